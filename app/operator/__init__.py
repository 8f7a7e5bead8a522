"""Commands of whoever runs the process: `python -m app <command>`."""
