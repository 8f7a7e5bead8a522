"""Business domains: each folder brings its tables, queries, commands and rules."""
