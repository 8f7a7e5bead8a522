"""Certificates of AUN: the chain of a tenant, one certificate per AID, and which are revoked."""
