"""PoolConformance: the pytest class to subclass; it needs nothing but an adapter."""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from poolproof_conformance.adapter import Adapter
from poolproof_conformance.generator import History
from poolproof_conformance.kit import judging
from poolproof_conformance.vectors.on_target import judge_file
from poolproof_conformance.vectors.vector_files import NAMES
from poolproof_spec.catalogue import PROPERTIES
from poolproof_spec.geometry import LAYOUTS

MOST_SHOWN = 5
"""Vectors that differ and are shown."""


class PoolConformance:
    """Everything that poolproof knows to ask of a pool, in well under two minutes.

    Subclass it in a test file, call the subclass Test..., and set `adapter`:

        class TestMyPool(PoolConformance):
            adapter = MyAdapter
            level = 1
            layouts = ("swa2",)
    """

    adapter: ClassVar[Callable[[], Adapter]]
    """Makes the adapter: its class, or a function."""
    level: ClassVar[Literal[0, 1, 2]] = 0
    """Rules up to this level must hold: 0 nothing breaks; 1 exact under pressure; 2 the fewest victims, in order."""
    layouts: ClassVar[tuple[str, ...]] = tuple(LAYOUTS)
    """Chains of members that the pool has: swa2, mamba2, tri."""
    histories: ClassVar[int] = 300
    """Random histories."""
    walks: ClassVar[int] = 15
    """Walks through each small configuration."""
    seed: ClassVar[int] = 1
    """The same seed gives the same histories."""
    budget_s: ClassVar[float] = 30.0
    """Each test leaves histories out once it has run this long, in seconds, and says so."""
    trace_folder: ClassVar[Path] = Path("poolproof-traces")
    """What fails is written here, made small."""
    known_failures: ClassVar[Mapping[str, str]] = {}
    """Name of a property that is known to fail, and why or where that is told: it fails no history's test."""
    vectors_differ: ClassVar[Mapping[str, tuple[int, str]]] = {}
    """Name of a file of vectors, how many of its cases are known to differ, and why: one more, or one less, fails."""

    def test_the_class_is_set_up(self) -> None:
        """Names are right, and the adapter says who it is."""
        odd = set(self.layouts) - LAYOUTS.keys()
        assert self.layouts and not odd, f"layouts {sorted(odd)}; known: {', '.join(LAYOUTS)}"
        unknown = self.known_failures.keys() - {rule.name for rule in PROPERTIES}
        assert not unknown, f"known_failures {sorted(unknown)}; known: {', '.join(rule.name for rule in PROPERTIES)}"
        assert self._adapter().describe().target

    def test_random_histories(self) -> None:
        """Histories under pressure, drawn from a seed."""
        self._judge(judging.random_histories(self.layouts, self.histories, self.seed))

    def test_small_configurations(self) -> None:
        """Walks through arenas of a few pages, where every corner is near."""
        self._judge(judging.small_histories(self.layouts, self.walks, self.seed))

    def test_known_counterexamples(self) -> None:
        """Histories on which released engines, or their policies, are wrong."""
        self._judge(judging.known_histories(self.layouts))

    @pytest.mark.parametrize("name", [name for name in NAMES if name != "fits"])
    def test_vectors(self, name: str) -> None:
        """Cases with their answers, as far as the level asks for them."""
        judged = judge_file(name, judging.all_vectors()[name], self._adapter(), level=self.level)
        assert not judged.doubts, f"no answer is no pass: {judged.doubts[:MOST_SHOWN]}"
        shown = [f"case {difference.tcId}: {difference.message}" for difference in judged.differences[:MOST_SHOWN]]
        known = self.vectors_differ.get(name)
        if known is not None:
            count, reason = known
            found = len(judged.differences)
            assert found == count, f"{count} cases of {name} are known to differ ({reason}), {found} do\n" + "\n".join(
                shown
            )
            if count:
                pytest.xfail(f"{count} cases differ, as is known: {reason}")
        assert not shown, f"{len(judged.differences)} cases of {name} differ\n" + "\n".join(shown)
        if not judged.passed:
            pytest.skip(f"no case applies: {'; '.join(judged.skipped)}")

    def _adapter(self) -> Adapter:
        return type(self).adapter()

    def _judge(self, histories: Iterable[History]) -> None:
        adapter = self._adapter()
        result = judging.judge(adapter, histories, self.level, self.budget_s)
        found = result.conformance
        if result.out_of_time:
            print(f"{self.budget_s:.0f} s were over after {found.traces} histories; the others were left out")
        lines: list[str] = []
        for failure in judging.unexpected(found.failures, self.known_failures):
            path = judging.written(adapter, failure, self.level, self.seed, self.trace_folder)
            lines += judging.failure_lines(failure, path)
            if os.environ.get("GITHUB_ACTIONS") == "true":
                print(judging.annotation(failure, self._file()))
        if lines:
            pytest.fail("\n".join(lines), pytrace=False)
        if found.doubts:
            reasons = "\n".join(
                f"{count} histories: {reason}" for reason, count in found.doubts.most_common(MOST_SHOWN)
            )
            pytest.fail(f"no answer is no pass\n{reasons}", pytrace=False)
        if not found.operations:
            if found.unbuilt:
                pytest.skip(f"the adapter builds none of these arenas ({found.unbuilt} histories)")
            pytest.fail("nothing was run: an empty run is no pass", pytrace=False)

    def _file(self) -> str:
        """The subclass's file, as the runner of the tests sees it."""
        return os.path.relpath(inspect.getfile(type(self)))
