"""The only governed write path: definitions, catalogue, pipeline, approvals, outbox."""
