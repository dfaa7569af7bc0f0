"""`opencse check`: what a model makes of the user's own texts."""
