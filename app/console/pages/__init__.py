"""One module a page, found by its `router`."""
