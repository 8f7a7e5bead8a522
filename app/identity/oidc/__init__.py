"""Sign-in with another provider, by OpenID Connect discovery (security.md, 3)."""
