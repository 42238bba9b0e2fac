"""Small changes of the specification, each of which must turn a theorem, an agreement or a random history red."""

from typing import NamedTuple

SPEC, REFERENCE = "spec/poolproof_spec", "reference/poolproof_reference"
SWEEP, DEMAND, QUOTAS, OCCUPANCY = (f"{SPEC}/{name}.py" for name in ("sweep", "demand", "quotas", "occupancy"))
STEPS, MOVES, VERDICT = (f"{SPEC}/{name}.py" for name in ("steps", "moves", "verdict"))
CHAIN, PROVED_MOVES, PROVED_QUOTAS, CONTRACT, INVARIANTS, ROUNDING = (
    f"{SPEC}/smt/theorems_{name}.py" for name in ("chain", "moves", "quotas", "contract", "invariants", "rounding")
)


class Mutant(NamedTuple):
    """One change: in `file`, the only occurrence of `found` becomes `instead`."""

    name: str
    file: str
    found: str
    instead: str


MUTANTS = (
    # Constants and operators of the sweep.
    Mutant("sweep-rounds-down", SWEEP, "arithmetic.ceil_div(position,", "arithmetic.floor_div(position,"),
    Mutant(
        "sweep-forgets-sink",
        SWEEP,
        "arithmetic.maximum(need.first_page, arithmetic",
        "arithmetic.maximum(0, arithmetic",
    ),
    Mutant("sweep-forgets-pins", SWEEP, "start + need.pinned_count + need.loose_count", "start + need.loose_count"),
    Mutant("sweep-forgets-loose", SWEEP, "start + need.pinned_count + need.loose_count", "start + need.pinned_count"),
    Mutant("sweep-misses-lowest-pin", SWEEP, "start <= need.pinned_start", "start <= need.pinned_start + 1"),
    Mutant("sweep-shy-of-lowest-pin", SWEEP, "start <= need.pinned_start", "start < need.pinned_start"),
    Mutant("sweep-overruns-grid", SWEEP, "end <= need.page_count,", "end <= need.page_count + 1,"),
    Mutant("sweep-wastes-last-page", SWEEP, "end <= need.page_count,", "end < need.page_count,"),
    Mutant(
        "sweep-ends-below-pins", SWEEP, "arithmetic.maximum(need.pinned_end,", "arithmetic.minimum(need.pinned_end,"
    ),
    Mutant(
        "sweep-adds-a-page",
        SWEEP,
        "where(empty, arithmetic.maximum(position, closed), end * need.page_bytes)",
        "where(empty, arithmetic.maximum(position, closed), (end + 1) * need.page_bytes)",
    ),
    Mutant(
        "sweep-loses-a-byte",
        SWEEP,
        "where(empty, arithmetic.maximum(position, closed), end * need.page_bytes)",
        "where(empty, arithmetic.maximum(position, closed), end * need.page_bytes - 1)",
    ),
    Mutant("sweep-ignores-low-band", SWEEP, "need.first_page * need.page_bytes, 0)", "0, 0)"),
    Mutant("sweep-ignores-high-band", SWEEP, "position <= need.page_count * need.page_bytes", "position >= 0"),
    Mutant("sweep-empty-restarts", SWEEP, "arithmetic.maximum(position, closed)", "closed"),
    # Constants of the quotas.
    Mutant("slack-a-byte-short", QUOTAS, "return page_bytes - 1", "return page_bytes - 2"),
    Mutant("slack-a-page-over", QUOTAS, "return page_bytes - 1", "return 2 * page_bytes"),
    Mutant("slack-left-out", QUOTAS, "total = total + grid_slack(size)", "total = total + 0"),
    # Constants of the demands.
    Mutant(
        "alloc-rounds-down",
        DEMAND,
        "arithmetic.ceil_div(tokens, page_tokens)",
        "arithmetic.floor_div(tokens, page_tokens)",
    ),
    Mutant(
        "extend-counts-prefix-down",
        DEMAND,
        "- arithmetic.ceil_div(prefix_len, page_tokens)",
        "- arithmetic.floor_div(prefix_len, page_tokens)",
    ),
    Mutant("decode-a-token-late", DEMAND, "before = seq_len - 1", "before = seq_len"),
    Mutant(
        "decode-always-a-page", DEMAND, "arithmetic.where(is_multiple, 1, 0)", "arithmetic.where(is_multiple, 1, 1)"
    ),
    Mutant(
        "tail-rounds-up",
        DEMAND,
        "arithmetic.floor_div(seq_len - tail, page_tokens)",
        "arithmetic.ceil_div(seq_len - tail, page_tokens)",
    ),
    Mutant("no-tail-all-pages", DEMAND, "arithmetic.where(tail == 0, 0, touched)", "touched"),
    # What an operation does.
    Mutant("pins-end-a-page-low", OCCUPANCY, "max(pinned, default=-1) + 1", "max(pinned, default=0)"),
    Mutant(
        "pins-start-at-highest", OCCUPANCY, "pinned_start=min(pinned, default=0)", "pinned_start=max(pinned, default=0)"
    ),
    Mutant("closed-gate-pins-nothing", OCCUPANCY, "if not member.gate_open:", "if False:"),
    Mutant("pending-is-free", OCCUPANCY, "pinned |= member.pending_pages", "pinned |= set()"),
    Mutant(
        "moves-in-chain-order",
        MOVES,
        "if not any(must_vacate_first(geometry, batch, other) for other in waiting if other is not batch)",
        "if batch is waiting[0]",
    ),
    Mutant("moves-what-may-stay", MOVES, "if page not in inside)", "if True)"),
    Mutant("tombstone-keeps-state", STEPS, "replace(entry, swa_ids=(), state_id=None)}", "replace(entry, swa_ids=())}"),
    Mutant(
        "leaf-with-children-is-legal", STEPS, "return unlocked and not has_children(tree, step.key)", "return unlocked"
    ),
    Mutant(
        "impossible-forgets-locks",
        VERDICT,
        'BLOCKERS: tuple[BlockerKind, ...] = ("events", "gates", "locks")',
        'BLOCKERS: tuple[BlockerKind, ...] = ("events", "gates")',
    ),
    # Premises of theorems.
    Mutant("T1-without-hypothesis", CHAIN, "(*premises, position <= closed, other_lies)", "(*premises, other_lies)"),
    Mutant("T2-without-hypothesis", CHAIN, "lower >= 0, lower <= position, window.fits)", "lower >= 0, window.fits)"),
    Mutant(
        "T2-more-loose",
        CHAIN,
        "less.pinned_count + less.loose_count <= more.pinned_count + more.loose_count,",
        "less.pinned_count + less.loose_count <= more.pinned_count + more.loose_count + 1,",
    ),
    Mutant("T3-without-order", PROVED_MOVES, "(*facts, *in_order, waits)", "(*facts, waits)"),
    Mutant("T3-without-window", PROVED_MOVES, "(inside, outside), source != target", "(outside,), source != target"),
    Mutant(
        "T3-room-for-one-less",
        PROVED_MOVES,
        "end - start >= pinned + loose + demanded,",
        "end - start >= pinned + loose + demanded - 1,",
    ),
    Mutant("T4-ends-anywhere", PROVED_MOVES, "(start < end, outside, ends_inside)", "(start < end, outside)"),
    Mutant("T5-frees-one-less", PROVED_QUOTAS, "demanded <= freed,", "demanded <= freed + 1,"),
    Mutant("T6-demanded-may-be-empty", PROVED_QUOTAS, "z3.Implies(demanded > 0, held > 0),", ""),
    Mutant("T6-sink-off-its-grid", PROVED_QUOTAS, "(first_page - 1) * page_bytes < sink,", ""),
    Mutant(
        "T6-pays-a-byte-less",
        PROVED_QUOTAS,
        "        added <= 0,\n        left > 0,",
        "        added <= 1,\n        left > 0,",
    ),
    Mutant("T8-without-hypothesis", CONTRACT, "smaller <= larger,", ""),
    Mutant("T9-prefix-not-proper", CONTRACT, "prefix_length < last,", ""),
    Mutant("T10-forgets-requests", CHAIN, "held + cached + demanded + pending,", "cached + demanded + pending,"),
    Mutant("W2-windows-overlap", INVARIANTS, "(*facts, in_order), ordered", "facts, ordered"),
    Mutant(
        "W3-lands-on-pending",
        INVARIANTS,
        "z3.And(new.live(identifier), z3.Not(old.pending(goes_to)))",
        "new.live(identifier)",
    ),
    Mutant(
        "W3-lands-on-live",
        INVARIANTS,
        "yield z3.Implies(z3.And(changed(identifier), old.live(other)), old.page_of(other) != goes_to)",
        "yield True",
    ),
    Mutant(
        "W4-tombstones-full",
        INVARIANTS,
        '"tombstone": (same_full, now_swa == z3.If(swa == one, NOBODY, swa))',
        '"tombstone": (same_swa, now_full == z3.If(full == one, NOBODY, full))',
    ),
)
