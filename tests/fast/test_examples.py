import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "scheduler_loop.py"


def test_the_scheduler_loop_serves_everybody_and_leaves_nothing_behind() -> None:
    lines: list[str] = []
    pool, happened = runpy.run_path(str(EXAMPLE))["run"](conversations=60, seed=2, say=lines.append)
    assert happened["finished"] >= 60
    for what in (
        "tokens found cached",
        "entries evicted",
        "batches of pages moved",
        "preempted",
        "forwards waited for",
    ):
        assert happened[what] > 0, what
    assert happened["refused"] >= happened["preempted"]
    assert len(lines) == happened["steps"] // 50
    assert not pool.store.flights.unfired and not pool.cache.locks.handles
    live = {member.role: member.live for member in pool.store.members}
    assert [live["full"], live["swa"], live["state"]] == pool.cache.cached


def test_a_request_that_can_never_fit_is_an_error() -> None:
    example = runpy.run_path(str(EXAMPLE))
    pool = example["FastPool"](example["layout"]("tri", total_bytes=4000, window_tokens=8, FULL=32, SWA=32, STATE=128))
    scheduler = example["Scheduler"](pool, [example["Request"](list(range(200)), target=210)])
    with pytest.raises(RuntimeError, match="too large for the arena"):
        scheduler.step()


def test_the_command_says_what_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    counts = {what: int(count) for count, what in (line.split(maxsplit=1) for line in lines if line[:1] == " ")}
    assert counts["finished"] > 150
    assert counts["tokens found cached"] > 0
