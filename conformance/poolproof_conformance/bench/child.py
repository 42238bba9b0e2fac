"""`python -m poolproof_conformance.bench.child --subject fast`: one subject, measured when it is asked to be."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from poolproof_conformance.bench.protocol import Answer, Ask
from poolproof_conformance.bench.runs import Bench
from poolproof_conformance.bench.subject import CannotError, Subject


def make_subject(arguments: Sequence[str]) -> Subject:
    """The subject that the command line names; only its own packages are imported."""
    parser = argparse.ArgumentParser(prog="python -m poolproof_conformance.bench.child", description=__doc__)
    parser.add_argument("--subject", choices=("fast", "sglang", "vllm"), required=True)
    parser.add_argument("--root", type=Path, help="folder that the release was installed into")
    parser.add_argument("--core", choices=("rust", "python"), default="rust", help="sglang's tree core")
    parser.add_argument("--mode", choices=("eager", "lazy"), default="lazy", help="when sglang compacts")
    parser.add_argument("--tables-apart", action="store_true", help="fast: device tables of their own")
    parser.add_argument("--not-cached", action="store_true", help="vllm: requests without block hashes")
    options = parser.parse_args(arguments)
    if options.subject == "sglang":
        from poolproof_conformance.bench.sglang_subject import SglangSubject

        return SglangSubject(options.root.resolve(), options.core, lazy=options.mode == "lazy")
    if options.subject == "vllm":
        from poolproof_conformance.bench.vllm_subject import VllmSubject

        return VllmSubject(options.root.resolve(), cached=not options.not_cached)
    from poolproof_conformance.bench.fast_subject import FastSubject

    return FastSubject(tables_apart=options.tables_apart)


def answer(bench: Bench, ask: Ask) -> Answer:
    """Carry one request out; whatever a subject raises is an answer too."""
    try:
        if ask.ask == "describe":
            return Answer(versions=bench.subject.versions())
        if ask.ask == "prepare":
            bench.prepare(ask.work, ask.size)
            return Answer()
        return Answer(value=bench.run())
    except CannotError as error:
        return Answer(cannot=str(error))
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Answer(error=f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})")


def serve(bench: Bench, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Answer until `stdin` ends."""
    decoder, encoder = msgspec.json.Decoder(Ask), msgspec.json.Encoder()
    for line in stdin:
        stdout.write(encoder.encode(answer(bench, decoder.decode(line))) + b"\n")
        stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve on the standard streams; what a subject prints goes to stderr."""
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        serve(Bench(make_subject(sys.argv[1:] if arguments is None else arguments)), sys.stdin.buffer, answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
