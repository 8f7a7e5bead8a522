"""`/v1`: the API for programs and agents."""
