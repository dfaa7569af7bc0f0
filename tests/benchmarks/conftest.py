"""The scripts of a benchmark import each other by name, as they do when they are run."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "debias" / "block"))
