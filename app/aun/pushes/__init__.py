"""What connections are told of an event: a family a file, found by itself, ending in `PUSHES`."""
