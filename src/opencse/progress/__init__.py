"""What is said while opencse works: how far each phase is, remarks, and how long the parts took."""

from opencse.progress.phase import Phase, Verbosity, duration, note, set_verbosity, track
from opencse.progress.timings import Timings, collect, divide, timed

__all__ = ["Phase", "Timings", "Verbosity", "collect", "divide", "duration", "note", "set_verbosity", "timed", "track"]
