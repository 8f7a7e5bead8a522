"""The catalogue for MCP clients at `/mcp`: each command a tool, each call through the pipeline."""
