"""What was done: the chained trail, its checkpoints and its verifier."""
