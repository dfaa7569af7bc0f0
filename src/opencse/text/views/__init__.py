"""Text views: their interface, their builder and their storage."""
