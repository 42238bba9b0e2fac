"""The sweep of one geometry, written out as straight-line Python and compiled: the proved formula, as fast as by hand.

Nothing is restated: [D-sweep] itself runs on terms (source_terms.py), with the geometry's numbers as constants, and
what came out is printed.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from poolproof_spec.arithmetic import Quantity, Truth
from poolproof_spec.geometry import Geometry
from poolproof_spec.occupancy import Occupancy
from poolproof_spec.source_terms import Term, TermArithmetic
from poolproof_spec.sweep import Sweep, sweep


class CompiledSweep(NamedTuple):
    """[D-sweep] of one geometry on non-negative Python ints."""

    decide: Callable[..., bool]
    """Whether windows exist."""
    windows: Callable[..., tuple[Any, ...]]
    """(fits, start 0, end 0, start 1, end 1, ...): the sweep's windows, in pages."""
    source: str
    """The text of both."""


def compile_sweep(geometry: Geometry) -> CompiledSweep:
    """Arguments: pinned_count, pinned_start, pinned_end, loose_count of each member, low bytes to high."""
    return _compiled(geometry, ("pinned_count", "pinned_start", "pinned_end", "loose_count"))


def compile_loose(geometry: Geometry) -> CompiledSweep:
    """The same where nothing is pinned. Arguments: loose_count of each member, low bytes to high."""
    return _compiled(geometry, ("loose_count",))


def _compiled(geometry: Geometry, fields: Sequence[str]) -> CompiledSweep:
    arithmetic = TermArithmetic()
    needs, names = [], []
    for index, member in enumerate(geometry.members):
        inputs = {field: arithmetic.input(f"{field}_{index}") for field in fields}
        names += [term.operands[0] for term in inputs.values()]
        needs.append(
            Occupancy(
                page_bytes=member.page_bytes,
                first_page=member.first_page,
                page_count=member.page_count,
                anchored_up=member.anchored and member.kind == "up",
                anchored_down=member.anchored and member.kind == "down",
                **inputs,
            )
        )
    source = source_of(sweep(needs, arithmetic), names)
    namespace: dict[str, Any] = {"__builtins__": {}}
    exec(compile(source, f"<sweep of {', '.join(member.name for member in geometry.members)}>", "exec"), namespace)
    return CompiledSweep(namespace["decide"], namespace["windows"], source)


def source_of(outcome: Sweep, names: Sequence[str]) -> str:
    """The text of `decide` and `windows` for a sweep on terms over the inputs `names`."""
    arguments = ", ".join(names)
    bounds = [bound for window in outcome.windows for bound in (window.start, window.end)]
    return "\n".join(
        (
            f"def decide({arguments}):",
            *(f"    {line}" for line in decision_lines(outcome.fits)),
            "",
            "",
            f"def windows({arguments}):",
            *(f"    {line}" for line in tuple_lines([outcome.fits, *bounds])),
            "",
        )
    )


def decision_lines(condition: Truth) -> Iterator[str]:
    """Lines that return a condition's truth; of a conjunction, one member after the other until one fails."""
    parts = condition.operands if isinstance(condition, Term) and condition.operation == "and" else (condition,)
    text = Text(parts)
    for part in parts:
        yield from text.locals_of(part)
        yield f"if {text.negated(part)}: return False"
    yield "return True"


def tuple_lines(values: Sequence[Quantity]) -> Iterator[str]:
    """Lines that return several values as a tuple."""
    text = Text(values)
    for value in values:
        yield from text.locals_of(value)
    yield f"return ({', '.join(text.atom(value) for value in values)},)"


class Text:
    """Python expressions for terms; what is used more than once is a local, assigned before its first use.

    A local may be computed where its user then takes another branch: nothing here fails or has effects.
    """

    def __init__(self, roots: Sequence[Any]) -> None:
        self._names: dict[int, str] = {}
        uses: dict[int, int] = {}
        for root in roots:
            _count_uses(root, uses)
        self._shared = {index for index, count in uses.items() if count > 1}
        self._fresh = (f"t{number}" for number in itertools.count())

    def locals_of(self, value: Any) -> Iterator[str]:
        """The assignments that `value` needs and that have not been written yet."""
        if not isinstance(value, Term) or value.operation == "input" or value.index in self._names:
            return
        for operand in value.operands:
            yield from self.locals_of(operand)
        if value.index in self._shared:
            expression = self._expression(value)
            self._names[value.index] = name = next(self._fresh)
            yield f"{name} = {expression}"

    def atom(self, value: Any) -> str:
        """A value where any operator may stand beside it."""
        if not isinstance(value, Term):
            return repr(value) if value >= 0 else f"({value!r})"
        if value.operation == "input":
            return str(value.operands[0])
        return self._names.get(value.index) or f"({self._expression(value)})"

    def negated(self, condition: Truth) -> str:
        """The text of a condition's opposite."""
        opposite = condition.arithmetic.negate(condition) if isinstance(condition, Term) else not condition
        if not isinstance(opposite, Term) or opposite.index in self._names:
            return self.atom(opposite)
        return self._expression(opposite)

    def _expression(self, value: Term) -> str:
        if value.operation == "not":
            return self._opposite(value.operands[0])
        parts = [self.atom(operand) for operand in value.operands]
        match value.operation:
            case "+" | "-" | "*" | "<=" | "==" | "and" | "or":
                return f" {value.operation} ".join(parts)
            case "floor":
                return f"{parts[0]} // {parts[1]}"
            case "ceil":
                return f"-(-{parts[0]} // {parts[1]})"
            case "maximum":
                return f"{parts[0]} if {parts[0]} >= {parts[1]} else {parts[1]}"
            case "minimum":
                return f"{parts[0]} if {parts[0]} <= {parts[1]} else {parts[1]}"
            case "where":
                return f"{parts[1]} if {parts[0]} else {parts[2]}"
        raise AssertionError(f"an operation without a text: {value.operation}")

    def _opposite(self, condition: Term) -> str:
        opposite = {"<=": ">", "==": "!="}.get(condition.operation)
        if condition.index in self._names or opposite is None:
            return f"not {self.atom(condition)}"
        left, right = condition.operands
        return f"{self.atom(left)} {opposite} {self.atom(right)}"


def _count_uses(value: Any, uses: dict[int, int]) -> None:
    """How often each term's text would be written; both operands of a maximum are written twice."""
    if not isinstance(value, Term) or value.operation == "input":
        return
    uses[value.index] = uses.get(value.index, 0) + 1
    if uses[value.index] > 1:
        return
    for operand in value.operands:
        _count_uses(operand, uses)
        if value.operation in ("maximum", "minimum"):
            _count_uses(operand, uses)
