"""Groups: who is in one, what each may do there, and how everybody learns what changed."""
