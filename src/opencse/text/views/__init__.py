"""Text views: constructors, their builder and storage."""
