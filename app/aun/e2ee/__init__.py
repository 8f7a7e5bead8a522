"""Encryption end to end: the directory of keys, envelopes, mail of hosted AIDs, group states."""
