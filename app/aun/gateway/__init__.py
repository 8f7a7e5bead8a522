"""The WebSocket gateway: handshake, connections, what is pushed to them."""
