"""Contrastive training of sentence encoders."""
