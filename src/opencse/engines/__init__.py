"""Engines for batch work: processes of this machine, or Ray. The output is the same, byte for byte.

| engine | class | for |
|---|---|---|
| `local` | `Local` | one machine |
| `ray` | `Ray` | a cluster whose machines see the same files (extra `ray`) |
"""

from opencse.engines.engine import Engine, WorkerTask
from opencse.engines.local import Local
from opencse.engines.ray import Ray

__all__ = ["Engine", "Local", "Ray", "WorkerTask"]
