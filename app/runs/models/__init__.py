"""The model layer: what the loop asks and what a model answers; no other package knows an SDK."""
