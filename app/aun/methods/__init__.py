"""The methods of the protocol: a family a file, found by itself, ending in `WRITES` and `READS`."""
