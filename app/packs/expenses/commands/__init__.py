"""What can be done with expenses: one command a file."""
