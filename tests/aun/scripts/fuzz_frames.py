"""Frames led by coverage: `python -m tests.aun.scripts.fuzz_frames [libFuzzer's flags] CORPUS`.

Whatever the bytes, they are a request whose parameters are understood or refused, or a refusal that
can be written; anything else is an exception, which ends the run with its traceback.
"""

import json
import sys

import atheris

with atheris.instrument_imports(include=["app.aun.frames", "app.aun.wire", "app.kernel.json"]):
    from app.aun import frames
from app.aun import rpc
from app.aun.errors import BadParams
from app.aun.frames import Refusal


def one(raw: bytes) -> None:
    """Read one frame as the gateway does."""
    try:
        request = frames.read(raw)
        found = rpc.table().get(request.method)
        if found is not None:
            rpc.understood(found[0].params, request.params)
    except Refusal as refused:
        json.loads(frames.failure(refused.id, refused.error, "trace"))
    except BadParams as wrong:
        json.loads(frames.failure(None, wrong, "trace"))


if __name__ == "__main__":
    rpc.table()
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
