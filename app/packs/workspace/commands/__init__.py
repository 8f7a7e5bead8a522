"""One command a file; each ends in `COMMAND`."""
