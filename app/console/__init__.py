"""The console: pages for people."""
