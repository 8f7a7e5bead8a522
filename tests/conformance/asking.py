"""What the official suite runs as a client: it hands the address to the test, and waits.

`python -S asking.py SOCKET URL`; our client needs seconds to load, and the suite starts dozens.
"""

import json
import os
import socket
import sys

if __name__ == "__main__":
    asked = {"url": sys.argv[2], "known": os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"}
    with socket.socket(socket.AF_UNIX) as test:
        test.connect(sys.argv[1])
        test.sendall(json.dumps(asked).encode() + b"\n")
        sys.exit(int(test.makefile().readline() or 1))
