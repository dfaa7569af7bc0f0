"""Views that a model generates or that are chosen among candidates: translation, prompting, masked prediction."""
