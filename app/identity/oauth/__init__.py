"""The embedded OAuth 2.1 authorization server (security.md, 2)."""
