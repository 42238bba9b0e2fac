"""Children that are wrong on purpose: `python wrong.py FAULT [LOCK]`. Each is correct until an operation comes.

With LOCK, the child and whatever it starts hold that file locked as long as one of them lives.
"""

import fcntl
import json
import os
import signal
import sys
import time

from toy import answer


def say(request, geometry, **changes):
    print(json.dumps({"seq": request["seq"], **answer(request, geometry), **changes}), flush=True)


def misbehave(fault, request, geometry):
    """Do the wrong thing instead of answering an operation."""
    if fault == "hangs":
        time.sleep(3600)
    elif fault == "hangs with a helper":
        if os.fork() == 0:
            time.sleep(3600)
        time.sleep(3600)
    elif fault == "exits":
        print("engine: out of pages", file=sys.stderr, flush=True)
        sys.exit(3)
    elif fault == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "prints garbage":
        print("Segmentation fault (not really)", flush=True)
    elif fault == "answers what is no reply":
        print(json.dumps({"seq": request["seq"], "outcome": {"type": "granted", "steps": 7}}), flush=True)
    elif fault == "answers deep nesting":
        print("[" * 100_000, flush=True)
    elif fault == "answers late":
        time.sleep(2.5)
        say(request, geometry)
    elif fault == "answers byte by byte":
        while True:
            sys.stdout.write(" ")
            sys.stdout.flush()
            time.sleep(0.05)
    elif fault == "floods":
        while True:
            sys.stdout.write("x" * 65536)
    elif fault == "floods stderr":
        for _ in range(100):
            sys.stderr.write("noise " * 10_000)
        say(request, geometry)
    elif fault == "wrong sequence":
        say(request, geometry, seq=request["seq"] - 1)
    elif fault == "answers twice":
        say(request, geometry)
        say(request, geometry)
    elif fault == "no outcome":
        print(json.dumps({"seq": request["seq"]}), flush=True)
    elif fault == "reports an error":
        print(json.dumps({"seq": request["seq"], "error": "the engine's own check failed"}), flush=True)
    elif fault == "closes stdout":
        os.close(1)
        time.sleep(3600)


def main():
    """Answer until the requests end, wrongly for operations."""
    fault, geometry = sys.argv[1], None
    if len(sys.argv) > 2:
        held = open(sys.argv[2], "w")  # noqa: SIM115 (open until the process ends)
        fcntl.flock(held, fcntl.LOCK_EX)
    if fault == "hangs at the start":
        time.sleep(3600)
    for line in sys.stdin:
        request = json.loads(line)
        geometry = request.get("geometry", geometry)
        if fault == "speaks another protocol" and request["request"] == "describe":
            say(request, geometry, protocol=99)
        elif request["request"] in ("apply", "step"):
            misbehave(fault, request, geometry)
        else:
            say(request, geometry)


if __name__ == "__main__":
    main()
