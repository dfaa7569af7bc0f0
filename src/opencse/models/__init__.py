"""Model names: a local folder, a bundled name or a hub id."""

from opencse.models.names import BUNDLED, resolve

__all__ = ["BUNDLED", "resolve"]
