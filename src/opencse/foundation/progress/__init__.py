"""Progress of long phases, remarks for the user, and timings."""

from opencse.foundation.progress.phase import Notify, Phase, Verbosity, duration, note, set_verbosity, track
from opencse.foundation.progress.timings import Timings, collect, divide, timed

__all__ = [
    "Notify",
    "Phase",
    "Timings",
    "Verbosity",
    "collect",
    "divide",
    "duration",
    "note",
    "set_verbosity",
    "timed",
    "track",
]
