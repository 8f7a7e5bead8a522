"""The ground: settings, clock, ids, database, events, errors, JSON and the way out."""
