"""Chainlit, in its own environment: an application that streams one word, and a client that waits.

`chainlit run chainlit_peer.py` serves; `python chainlit_peer.py PORT` connects, and answers a line
with one of JSON: the seconds from each of so many messages to its first stream event.
"""

import asyncio
import json
import sys
import time
import uuid
from typing import Any

PAUSE_S = 0.15


async def client(port: int) -> None:
    """Rounds, as they are asked for."""
    import socketio  # type: ignore[import-not-found,unused-ignore]

    heard = asyncio.Event()
    sio = socketio.AsyncClient()

    async def on(*_told: Any) -> None:
        heard.set()

    for name in ("stream_start", "stream_token"):
        sio.on(name, on)
    session = {"clientType": "webapp", "sessionId": str(uuid.uuid4()), "threadId": ""}
    auth = {**session, "userEnv": "{}", "chatProfile": ""}
    await sio.connect(
        f"http://127.0.0.1:{port}", auth=auth, socketio_path="/ws/socket.io",
        transports=["websocket"],
    )  # fmt: skip
    await sio.emit("connection_successful")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while line := await asyncio.to_thread(sys.stdin.readline):
        taken = []
        for _ in range(int(line)):
            heard.clear()
            began = time.perf_counter()
            await sio.emit("client_message", _message())
            await asyncio.wait_for(heard.wait(), 30)
            taken.append(time.perf_counter() - began)
            await asyncio.sleep(PAUSE_S)
        sys.stdout.write(json.dumps(taken) + "\n")
        sys.stdout.flush()
    await sio.disconnect()


def _message() -> dict[str, Any]:
    said = {"id": str(uuid.uuid4()), "name": "user", "type": "user_message", "output": "Go on"}
    return {"message": {**said, "createdAt": "2026-01-01T00:00:00Z"}, "fileReferences": []}


if __name__ == "__main__":
    asyncio.run(client(int(sys.argv[1])))
else:
    import chainlit as cl  # type: ignore[import-not-found,unused-ignore]

    @cl.on_message  # type: ignore[untyped-decorator,unused-ignore]
    async def answer(_message: Any) -> None:
        """Stream one word."""
        message = cl.Message(content="")
        await message.stream_token("I understood. ")
        await message.update()
