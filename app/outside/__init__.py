"""Tools of servers that others run: registered by administrators, pinned, and never trusted."""
