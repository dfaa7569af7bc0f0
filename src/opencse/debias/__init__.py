"""The meaning block and everything that exists for it: its loss, its strength, its projection."""
