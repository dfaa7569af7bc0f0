"""What users see when something stops: what is wrong, and what to do about it."""

from __future__ import annotations


class OpencseError(Exception):
    """A problem that the user can mend.

    The command line prints it as one line and exits with code 2; from Python it is raised as it is. Anything that is
    not an `OpencseError` is a defect of this library.

    Args:
        problem: What is wrong, naming the file, key or value.
        remedy: What to do about it.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem.rstrip('.')}. {remedy}".strip() if remedy else problem)


class Interrupted(Exception):
    """A run was interrupted after it had written a checkpoint, from which it can go on."""
