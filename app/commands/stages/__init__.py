"""The twenty stages of a call and the four after its commit, a module each."""
