"""Who is calling: tenants, people, sessions, the OAuth server, agents and delegations."""
