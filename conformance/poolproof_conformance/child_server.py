"""The child's side of the protocol in child_protocol.py: serves one adapter over two byte streams."""

import os
import sys
import traceback
from typing import BinaryIO

import msgspec

from poolproof_conformance.adapter import Adapter, UnsupportedGeometryError
from poolproof_conformance.child_protocol import (
    PROTOCOL,
    AnyRequest,
    Apply,
    ApplyAndObserve,
    Build,
    Describe,
    Observe,
    Reply,
    Write,
)
from poolproof_spec.operation import AnyOperation
from poolproof_spec.outcome import AnyOutcome, Crashed


def serve(adapter: Adapter, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Answer requests until `stdin` ends. Returns after the first request that could not be answered."""
    decoder = msgspec.json.Decoder(AnyRequest)
    encoder = msgspec.json.Encoder()
    for line in stdin:
        reply = _answer(adapter, decoder, line)
        stdout.write(encoder.encode(reply) + b"\n")
        stdout.flush()
        if reply.error is not None:
            return


def serve_standard_streams(adapter: Adapter) -> None:
    """Serve on the process's own streams; what an engine prints goes to stderr, where it cannot break the protocol."""
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        serve(adapter, sys.stdin.buffer, answers)


def _answer(adapter: Adapter, decoder: msgspec.json.Decoder[AnyRequest], line: bytes) -> Reply:
    try:
        request = decoder.decode(line)
    except msgspec.MsgspecError as error:
        return Reply(seq=0, error=f"cannot read the request: {error}")
    try:
        return _carry_out(adapter, request)
    except Exception:
        return Reply(seq=request.seq, error=traceback.format_exc(limit=-4).strip())


def _carry_out(adapter: Adapter, request: AnyRequest) -> Reply:
    for member, identifier, stamp in request.writes:
        adapter.write(member, identifier, stamp)
    match request:
        case Describe():
            return Reply(seq=request.seq, protocol=PROTOCOL, description=adapter.describe())
        case Build():
            try:
                adapter.build(request.geometry)
            except UnsupportedGeometryError as error:
                return Reply(seq=request.seq, built=False, unsupported=str(error))
            return Reply(seq=request.seq, built=True)
        case Apply():
            return Reply(seq=request.seq, outcome=_apply(adapter, request.operation))
        case ApplyAndObserve():
            outcome = _apply(adapter, request.operation)
            return Reply(seq=request.seq, outcome=outcome, state=adapter.observe())
        case Observe():
            return Reply(seq=request.seq, state=adapter.observe())
        case Write():
            return Reply(seq=request.seq)


def _apply(adapter: Adapter, operation: AnyOperation) -> AnyOutcome:
    """The adapter's outcome; an exception that it let through is told as a crash, with the place it came from."""
    try:
        return adapter.apply(operation)
    except Exception as error:
        place = traceback.format_exc(limit=-2).strip().splitlines()
        return Crashed(reason=f"{type(error).__name__}: {error}\n" + "\n".join(place[1:-1]))
