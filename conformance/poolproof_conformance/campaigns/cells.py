"""Which cells a campaign has, and how the target of a cell is opened."""

from collections.abc import Sequence
from itertools import product

from poolproof_conformance.adapter import Inability
from poolproof_conformance.campaigns.rows import Cell
from poolproof_conformance.target_names import Target, resolve_target
from poolproof_conformance.trace_format import Mode, TreeCore
from poolproof_spec import operation as op


def cells_of(
    names: Sequence[str], cores: Sequence[TreeCore], modes: Sequence[Mode], layouts: Sequence[str]
) -> list[Cell]:
    """Every target with every core and mode that it has, on every layout. Raises what resolve_target raises."""
    cells: dict[Cell, None] = {}
    for name, core, mode, layout in product(names, cores, modes, layouts):
        target = resolve_target(name, core, mode)
        cells[Cell(target=target.name, core=target.tree_core, mode=target.mode, layout=layout)] = None
    return list(cells)


def target_of(cell: Cell) -> Target:
    """The target of a cell. Raises TargetNameError or TargetNotInstalledError."""
    return resolve_target(cell.target, cell.core or "rust", cell.mode or "eager")


def is_offered(operation: op.AnyOperation, cannot: Sequence[Inability]) -> bool:
    """Whether a target with these inabilities is sent such an operation at all."""
    match operation:
        case op.Gate():
            return "gates" not in cannot
        case op.Launch() | op.Fire():
            return "in_flight" not in cannot
        case op.GroupBegin() | op.GroupEnd():
            return "groups" not in cannot
        case op.DemandOperation(may_wait=False):
            return "no_wait" not in cannot
    return True
