"""Engines for batch work: processes of this machine, or Ray. The output is the same, byte for byte.

| engine | class | for |
|---|---|---|
| `local` | `Local` | one machine |
| `ray` | `Ray` | a cluster whose machines see the same files (extra `ray`) |
"""

from opencse.foundation.workers.local import Engine, Local, WorkerTask
from opencse.foundation.workers.ray import Ray

__all__ = ["Engine", "Local", "Ray", "WorkerTask"]
