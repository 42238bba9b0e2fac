"""The model as text for SPIN: tables of the configuration, the step in C, and a process that tries every operation.

The state is one C structure that SPIN tracks. Each operation is one d_step, so that no state between its parts is
stored, and the process is at the same place before and after it: SPIN's stored states are those of the model, one to
one. Its transitions are one more than the model's, as it counts the way into the initial state.
"""

from collections.abc import Iterable, Sequence
from importlib.resources import files

from poolproof_conformance.explorer.configuration import Configuration, Key
from poolproof_conformance.wording import call_words
from poolproof_spec import operation as op
from poolproof_spec.calls import is_good_call
from poolproof_spec.demand import demand_of
from poolproof_spec.geometry import Geometry
from poolproof_spec.prefixes import caches_states, window_pages
from poolproof_spec.state import MemberState, PoolState

ROLES = {"full": "FULL", "swa": "SWA", "state": "STATES"}
KINDS = {"up": "UP", "float": "FLOAT", "down": "DOWN"}
CALLS = (
    *("NO_CALL", "INSERT", "MATCH", "LOCK", "UNLOCK", "UNLOCK_WINDOW", "RESERVE", "RECOVER", "FREE", "FREE_WINDOW"),
    *("GROUP_BEGIN", "GROUP_END", "CLOSE", "OPEN", "LAUNCH", "FIRE", "COMPACT", "QUERY", "CAPACITY"),
)

HEAD = """/* {name}: {about}
 * Written by poolproof explore {name} --export promela. To explore it:
 *   spin -a {name}.pml && gcc -O2 -DSAFETY -DNOREDUCE -o pan pan.c && ./pan -m1000000
 */
"""


def promela(configuration: Configuration) -> str:
    """The whole text."""
    step = (files("poolproof_conformance.explorer.promela") / "step.c").read_text(encoding="utf-8")
    choices = "\n".join(
        f"  :: d_step {{ c_expr {{ S.enabled >> {number} & 1 }} -> c_code {{ step({number}); }} }}"
        f" /* {call_words(operation)} */"
        for number, operation in enumerate(configuration.operations)
    )
    return (
        HEAD.format(name=configuration.name, about=configuration.about)
        + "c_decl {\n"
        + "\n".join(_tables(configuration))
        + "\n\n"
        + step
        + "}\n\n"
        + 'c_track "&S" "sizeof(pool)" "Matched"\n\n'
        + f"active proctype explore() {{\n  do\n{choices}\n  od\n}}\n"
    )


def _tables(configuration: Configuration) -> Iterable[str]:
    geometry, operations = configuration.geometry, configuration.operations
    members = geometry.members
    positions = _positions(operations)
    number = {key: index for index, key in enumerate(positions)}
    ids = len(geometry.id_range("full")), len(geometry.id_range("state"))
    yield _names("role", "FULL", "SWA", "STATES")
    yield _names("growth", "UP", "FLOAT", "DOWN")
    yield _names("call", *CALLS)
    constants = {
        "MEMBERS": len(members),
        "TOKEN_IDS": ids[0],
        "STATE_IDS": ids[1],
        "MOST_IDS": max(ids) + 1,
        "MOST_PAGES": max(member.page_count for member in members),
        "POSITIONS": max(len(positions), 1),
        "LONGEST": max([len(key) for key in positions], default=1),
        "REQUESTS": max(len(_requests(operations)), 1),
        "HANDLES": max(len(_handles(operations)), 1),
        "CACHES_SWA": int(geometry.has_role("swa")),
        "CACHES_STATES": int(caches_states(geometry)),
        "WINDOW": window_pages(geometry),
        "BAD_CALLS": int(configuration.bad_calls),
        "CALLS": len(operations),
    }
    yield f"enum {{ {', '.join(f'{name} = {value}' for name, value in constants.items())} }};"
    empty = _empty(geometry)
    at_first = [configuration.bad_calls or is_good_call(empty, operation) for operation in operations]
    yield f"enum {{ ENABLED_AT_FIRST = {sum(1 << n for n, is_on in enumerate(at_first) if is_on)} }};"
    yield _list("PAGE_BYTES[MEMBERS]", [member.page_bytes for member in members])
    yield _list("FIRST[MEMBERS]", [member.first_page for member in members])
    yield _list("COUNT[MEMBERS]", [member.page_count for member in members])
    yield _list("ROLE[MEMBERS]", [ROLES[member.role] for member in members])
    yield _list("KIND[MEMBERS]", [KINDS[member.kind] for member in members])
    by_age = sorted(positions, key=lambda key: (-len(key), key))
    yield _list("PARENT[POSITIONS]", [number.get(key[:-1], -1) for key in positions] or [-1])
    yield _list("DEPTH[POSITIONS]", [len(key) for key in positions] or [1])
    yield _list("TURN[POSITIONS]", [by_age.index(key) for key in positions] or [0])
    yield "typedef struct { int kind, name, full, swa, states, may_wait, writes, length, path[LONGEST]; } operation;"
    yield "static const operation OPERATIONS[] = {"
    yield from (
        f"  {_row(configuration, operation, number)}, /* {call_words(operation)} */" for operation in operations
    )
    yield "};"


def _row(configuration: Configuration, operation: op.AnyOperation, number: dict[Key, int]) -> str:
    kind, operations = op.operation_name(operation).upper(), configuration.operations
    name = full = swa = states = may_wait = writes = 0
    path: list[int] = []
    match operation:
        case op.Gate(open=is_open):
            kind = "OPEN" if is_open else "CLOSE"
        case op.Insert(key=key) | op.Match(key=key) | op.LockPrefix(key=key):
            path = [number[key[:length]] for length in range(1, len(key) + 1)]
            kind = kind if key else "NO_CALL"
        case op.Launch(writes=named):
            writes = sum(1 << _requests(operations).index(one) for one in named)
    match operation:
        case op.Insert(state=with_state):
            states = int(with_state)
        case op.LockPrefix(name=handle) | op.Unlock(name=handle) | op.UnlockWindow(name=handle):
            name = _handles(operations).index(handle)
        case op.Free(name=request) | op.FreeWindow(name=request):
            name = _requests(operations).index(request)
        case op.DemandOperation(name=request):
            kind = "RECOVER" if isinstance(operation, op.Recover) else "RESERVE"
            name, demand = _requests(operations).index(request), demand_of(_empty(configuration.geometry), operation)
            assert demand is not None
            full, swa, states, may_wait = demand.full_pages, demand.swa_pages, demand.state_pages, int(demand.may_wait)
    numbers = [name, full, swa, states, may_wait, writes, len(path)]
    return f"{{{kind}, {', '.join(map(str, numbers))}, {{{', '.join(map(str, path)) or 0}}}}}"


def _empty(geometry: Geometry) -> PoolState:
    return PoolState(geometry=geometry, members=tuple(MemberState() for _ in geometry.members))


def _positions(operations: Sequence[op.AnyOperation]) -> list[Key]:
    keys = [o.key for o in operations if isinstance(o, op.Insert | op.Match | op.LockPrefix)]
    return sorted({key[:length] for key in keys for length in range(1, len(key) + 1)})


def _requests(operations: Sequence[op.AnyOperation]) -> list[str]:
    named = op.DemandOperation | op.Free | op.FreeWindow
    return sorted({o.name for o in operations if isinstance(o, named)})


def _handles(operations: Sequence[op.AnyOperation]) -> list[str]:
    return sorted({o.name for o in operations if isinstance(o, op.LockPrefix | op.Unlock | op.UnlockWindow)})


def _names(what: str, *names: str) -> str:
    return f"enum {what} {{ {', '.join(names)} }};"


def _list(name: str, values: Sequence[object]) -> str:
    return f"static const int {name} = {{{', '.join(map(str, values))}}};"
