"""An outside server that is a program: speaks over its own input and output, and has a child.

python program.py <file>     writes its process ids there
"""

import json
import os
import subprocess
import sys
from pathlib import Path

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def main() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with Path(sys.argv[1]).open("a") as file:
        file.write(f"{os.getpid()} {child.pid}\n")
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            said = {"jsonrpc": "2.0", "id": asked["id"], **answer(asked)}
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()


def answer(asked: dict[str, object]) -> dict[str, object]:
    match asked["method"]:
        case "initialize":
            return {
                "result": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "program", "version": "1"},
                }
            }
        case "tools/list":
            return {"result": {"tools": [{"name": "look", "inputSchema": CITY}]}}
        case "tools/call":
            said = f"{os.environ.get('GREETING', '')} {'ASSENT_MASTER_KEY' in os.environ}"
            return {"result": {"content": [{"type": "text", "text": said}]}}
    return {"error": {"code": -32601, "message": "no such method"}}


main()
