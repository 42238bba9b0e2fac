"""Public reports of KV-cache pools going wrong, each as a small state of the reference that shows what is right.

A test is named by its report: the repository and the number, `_review` where the report is a comment in its review.
Every step is judged by all rules of the specification as well. Two reports no pool of this model can hold:

- TensorRT-LLM#12834: free counters of two memory levels; the model has one level, no host tier.
- TensorRT-LLM#8830: reuse of a block that was offloaded to the second level; the same.

Others are held in the closest form that the model has; their docstrings say what stands for what.
"""

import re

import pytest

from poolproof_conformance.reference_adapter import ReferenceAdapter
from poolproof_conformance.run import Session
from poolproof_reference.errors import DoubleFreeError, UnknownIdError
from poolproof_reference.pool import Pool
from poolproof_reference.reserve import victims
from poolproof_spec import operation as op
from poolproof_spec.demand import Demand, demand_of
from poolproof_spec.fits import fits
from poolproof_spec.geometry import Geometry, layout
from poolproof_spec.outcome import Answer, AnyOutcome, Blocked, Done, Granted, Impossible, Rejected, Step
from poolproof_spec.payload import read_stamp
from poolproof_spec.state import Entry, Hold, PoolState
from poolproof_spec.units import PageKey, TokenCount, VirtualId

REPORTS = """
sglang#39294 sglang#39294-review sglang#33091 sglang#33091-review sglang#34441 sglang#36713 sglang#36713-review
sglang#36729-review sglang#29678-review sglang#39982 sglang#38836 sglang#38836-review sglang#39477-review
sglang#36731-review sglang#35158 sglang#32217 sglang#26302 sglang#4987 sglang#27586 sglang#36135 sglang#38519
sglang#25805 sglang#36350 sglang#36770 sglang#28246 vllm#48489 vllm#42948 vllm#39734 vllm#55800 vllm#42571
TensorRT-LLM#12834 TensorRT-LLM#8830 LMCache#2942 LMCache#3189 nano-vllm#240 mini-sglang#142
""".split()  # noqa: SIM905
NOT_HELD = {"TensorRT-LLM#12834", "TensorRT-LLM#8830"}


class Judged:
    """A reference pool, every step of which must pass every rule."""

    def __init__(self, geometry: Geometry) -> None:
        self.session = Session(ReferenceAdapter(), geometry)

    def __call__(self, operation: op.AnyOperation) -> AnyOutcome:
        record = self.session.step(0, operation)
        assert record.outcome is not None, f"{operation} was skipped"
        assert not record.findings, record.findings
        return record.outcome

    def insert(self, *keys: int, state: bool = False) -> None:
        """Cache a prefix; it must fit."""
        assert isinstance(self(op.Insert(key=prefix(*keys), state=state)), Done)

    def hold(self, name: str, pages: int, *, swa: bool = True) -> None:
        """A running request with pages of one token; it must get them without an eviction."""
        count = TokenCount(pages)
        full_only = op.ExtendTail(name=name, prefix_len=TokenCount(0), seq_len=count, tail=TokenCount(0))
        assert granted(self(op.Alloc(name=name, tokens=count) if swa else full_only)) == ()

    @property
    def state(self) -> PoolState:
        return self.session.state

    def entry(self, *keys: int) -> Entry:
        return next(entry for entry in self.state.entries if entry.key == prefix(*keys))

    def live(self, member: str) -> dict[VirtualId, int]:
        """Page of each id that is live in a member."""
        return dict(self.state.member(member).bindings)


def prefix(*keys: int) -> tuple[PageKey, ...]:
    return tuple(PageKey(key) for key in keys)


def alloc(tokens: int, name: str = "r", *, may_wait: bool = True) -> op.Alloc:
    return op.Alloc(name=name, tokens=TokenCount(tokens), may_wait=may_wait)


def tail_demand(seq_len: int, tail: int, name: str = "r") -> op.ExtendTail:
    return op.ExtendTail(name=name, prefix_len=TokenCount(0), seq_len=TokenCount(seq_len), tail=TokenCount(tail))


def decode(*seq_lens: int) -> op.Decode:
    return op.Decode(name="r", seq_lens=tuple(TokenCount(length) for length in seq_lens))


def granted(outcome: AnyOutcome) -> tuple[Step, ...]:
    """The steps of a demand that must have been met."""
    assert isinstance(outcome, Granted), outcome
    return outcome.steps


def leaves(*keys: int) -> tuple[Step, ...]:
    return tuple(Step(kind="leaf", key=prefix(key)) for key in keys)


def token_pages(outcome: AnyOutcome) -> int:
    assert isinstance(outcome, Answer)
    return outcome.token_pages


def swa2(pages: int) -> Geometry:
    """FULL and SWA with `pages` usable pages of 32 bytes between them, one token each."""
    return layout("swa2", 32 * (1 + pages), SWA=32, FULL=32)


def test_every_report_is_held_or_listed() -> None:
    tests = [name for name in globals() if re.match(r"test_[a-z_]+_\d+", name)]
    found = []
    for report in REPORTS:
        repository, _, number = report.lower().replace("-", "_").partition("#")
        of_report = [name for name in tests if re.match(rf"test_{repository}_{number}_(?!review)", name)]
        assert len(of_report) == (0 if report in NOT_HELD else 1), report
        assert report not in NOT_HELD or report in str(__doc__)
        found += of_report
    assert sorted(found) == sorted(tests)


def test_sglang_39294_joint_demand_triggers_eviction() -> None:
    """Each side alone had room for the demand, so nothing was evicted, and both together had not."""
    pool = Judged(swa2(10))
    pool.insert(1)
    pool.insert(2)
    assert fits(pool.state, Demand(full_pages=4))
    assert fits(pool.state, Demand(swa_pages=4))
    assert token_pages(pool(op.Query())) == 3
    assert granted(pool(alloc(4))) == leaves(1)


def test_sglang_39294_review_infeasible_demand_loses_nothing() -> None:
    """A second pass had the whole cache as its quota: a demand that can never fit lost all 96 cached pages."""
    pool = Judged(layout("swa2", 6400, SWA=32, FULL=32))
    for key in range(96):
        pool.insert(key)
    before = pool.state
    outcome = pool(alloc(101))
    assert isinstance(outcome, Rejected)
    assert outcome.reason == Impossible(bound="bytes", where="FULL", needed=203, available=200)
    assert pool.state == before


def test_sglang_33091_stops_when_a_peers_release_made_room() -> None:
    """The eviction counted its own component's pages only, and went on after the state of its first victim sufficed."""
    pool = Judged(layout("mamba2", 576, STATE=160, FULL=32))
    pool.insert(1, state=True)
    pool.insert(2, state=True)
    assert granted(pool(alloc(2))) == leaves(1)


def test_sglang_33091_review_tombstones_one_node_at_a_time() -> None:
    """One step of the walk tombstoned several inner nodes, so that the first sufficient one could not stop it."""
    pool = Judged(swa2(9))
    for length in range(1, 5):
        pool.insert(*range(1, length + 1))
    assert len(pool.state.entries) == 4
    pool(op.LockPrefix(name="x", key=prefix(1, 2, 3, 4)))
    assert granted(pool(alloc(1))) == (Step(kind="tombstone", key=prefix(1, 2, 3)),)
    assert len(pool.live("SWA")) == 4


def test_sglang_34441_full_pages_fund_a_state() -> None:
    """A shortage of states evicted states only, though FULL pages had taken the bytes between the two."""
    pool = Judged(layout("mamba2", 512, STATE=176, FULL=32))
    for key in range(8):
        pool.insert(key)
    assert not fits(pool.state, Demand(state_pages=1))
    assert granted(pool(op.AllocStates(name="r", count=1))) == leaves(0, 1, 2)


def test_sglang_36713_free_state_ids_without_bytes() -> None:
    """State ids were free and no bytes: evicting states was tried, which cannot help; FULL pages have to pay."""
    pool = Judged(layout("mamba2", 880, STATE=176, FULL=32))
    pool(op.AllocStates(name="s", count=1))
    pool.hold("h", 5)
    for key in range(6):
        pool.insert(key)
    assert len(pool.state.free_state_ids) == 3
    assert not fits(pool.state, Demand(state_pages=1))
    assert granted(pool(op.AllocStates(name="r", count=1))) == leaves(0)


def test_sglang_36713_review_quota_in_pages_is_a_lower_bound_only() -> None:
    """A state is 5.5 FULL pages; a quota of 5 left the target unmet, the page grid makes it 6."""
    pool = Judged(layout("mamba2", 880, STATE=176, FULL=32))
    pool(op.AllocStates(name="s", count=1))
    for key in range(16):
        pool.insert(key)
    assert min(pool.live("FULL").values()) == 11
    assert granted(pool(op.AllocStates(name="r", count=1))) == leaves(*range(6))


def test_sglang_36729_review_demand_of_swa_alone() -> None:
    """A planner refused every demand with more SWA than FULL pages, whatever the pool held."""
    pool = Judged(swa2(10))
    assert victims(pool.state, Demand(full_pages=0, swa_pages=1)) == []
    pool.hold("r", 1, swa=False)
    assert demand_of(pool.state, op.Recover(name="r")) == Demand(full_pages=0, swa_pages=1)
    assert granted(pool(op.Recover(name="r"))) == ()
    assert pool.live("SWA").keys() == pool.live("FULL").keys()


def test_sglang_29678_review_full_may_borrow_beyond_its_share() -> None:
    """A fixed share for each side made FULL's availability negative once it had borrowed bytes of SWA."""
    pool = Judged(swa2(11))
    pool.hold("long", 5, swa=False)
    assert token_pages(pool(op.Query())) == 3
    assert granted(pool(alloc(1))) == ()


def test_sglang_39982_no_move_of_the_float_behind_a_closed_gate() -> None:
    """Compacting the float moved pages while a transfer held the gate closed."""
    pool = Judged(layout("tri", 256, STATE=32, SWA=32, FULL=32))
    for name in "abc":
        pool.hold(name, 1)
    pool(op.FreeWindow(name="b"))
    pool(op.Gate(open=False))
    before = pool.live("SWA")
    assert sorted(before.values()) == [1, 3]
    outcome = pool(tail_demand(2, 0))
    assert isinstance(outcome, Rejected)
    assert outcome.reason == Blocked(by=("gates",))
    pool(op.Compact())
    assert pool.live("SWA") == before
    pool(op.Gate(open=True))
    assert granted(pool(tail_demand(2, 0))) == ()
    assert sorted(pool.live("SWA").values()) == [1, 2]


def test_sglang_38836_capacity_follows_the_gate() -> None:
    """Capacity was remembered until the next allocation: after a gate closed, holes behind it were still promised."""
    pool = Judged(swa2(11))
    for name, pages in (("a", 1), ("b", 3), ("c", 1)):
        pool.hold(name, pages)
    pool(op.FreeWindow(name="b"))
    assert token_pages(pool(op.Query())) == 2
    pool(op.Gate(open=False))
    assert token_pages(pool(op.Query())) == 1
    pool(op.Capacity())
    pool(op.Gate(open=True))
    assert token_pages(pool(op.Query())) == 2


def test_sglang_38836_review_a_sentinel_is_never_freed() -> None:
    """A list of states with the sentinel -1 in it was freed, and -1 became an id that could be allocated."""
    pool = Pool(layout("mamba2", 512, STATE=48, FULL=32))
    placed = pool.place(Demand(state_pages=1))
    assert placed is not None
    ((_, state_id),) = pool.take(Demand(state_pages=1), placed[0])
    before = pool.observe()
    with pytest.raises(UnknownIdError, match="-1"):
        pool.free(Hold(name="", state_ids=(state_id, VirtualId(-1))))
    assert pool.observe() == before


def test_sglang_39477_review_admission_prices_the_pair() -> None:
    """Admission compared each side alone with its room; the pair did not fit, and the allocation failed."""
    pool = Judged(layout("tri", 416, STATE=32, SWA=32, FULL=32))
    assert fits(pool.state, Demand(full_pages=10))
    assert fits(pool.state, Demand(swa_pages=10))
    answer = pool(op.Capacity())
    assert answer == Answer(token_pages=6, exact_granted=True, one_more_granted=False)
    assert isinstance(pool(alloc(10)), Rejected)
    assert granted(pool(alloc(6))) == ()


def test_sglang_36731_review_a_copy_in_flight_keeps_its_place() -> None:
    """A copy to the host was queued by physical page; a compaction moved the page and the copy read what came next.

    The copy is a forward in flight here: what it reads may be moved, but its old place stays as it was until the event.
    """
    pool = Judged(swa2(6))
    for name in "abc":
        pool.hold(name, 1)
    pool(op.Launch(event="copy"))
    pool(op.Free(name="b"))
    identifier, old_page = min(pool.live("FULL").items(), key=lambda binding: binding[1])
    stamp = next(stamp for payload_of, i, stamp in pool.state.payloads if (payload_of, i) == ("FULL", identifier))
    pool(op.Compact())
    assert pool.live("FULL")[identifier] != old_page
    assert pool.state.member("FULL").pending == ((old_page, "copy"),)
    assert isinstance(pool(alloc(1, may_wait=False)), Rejected)
    adapter = pool.session.adapter
    assert isinstance(adapter, ReferenceAdapter)
    assert adapter.pool is not None
    assert read_stamp(bytes(adapter.pool.pool.arena[old_page * 32 : (old_page + 1) * 32])) == stamp
    pool(op.Fire(event="copy"))
    assert granted(pool(alloc(1, may_wait=False))) == ()


def test_sglang_35158_a_pool_too_small_says_so() -> None:
    """A pool smaller than one request's window and three states retracted and retried for ever."""
    pool = Judged(layout("tri", 256, STATE=48, SWA=32, FULL=32))
    pool.insert(1)
    pool.hold("window", 2)
    before = pool.state
    for _ in range(2):
        outcome = pool(op.AllocStates(name="window", count=3))
        assert isinstance(outcome, Rejected)
        assert outcome.reason == Impossible(bound="bytes", where="FULL", needed=10, available=8)
        assert pool.state == before


@pytest.mark.parametrize(
    ("demand", "pages"),
    [
        pytest.param(op.Extend(name="r", prefix_lens=(7, 7), seq_lens=(8, 9)), 1, id="extend-19-for-8"),  # type: ignore[arg-type]
        pytest.param(decode(9, 17, 16), 2, id="decode-24-for-16"),
        pytest.param(op.Extend(name="r", prefix_lens=(9, 9), seq_lens=(11, 12)), 0, id="several-tokens-16-for-0"),  # type: ignore[arg-type]
    ],
)
def test_sglang_32217_no_page_is_evicted_for_a_guess(demand: op.AnyDemand, pages: int) -> None:
    """Callers with pages of 8 tokens evicted for one page more for each request than the request takes."""
    pool = Judged(layout("swa2", 256 * (3 + 2 * pages), page_tokens=8, window_tokens=8, SWA=256, FULL=256))
    pool.insert(1)
    assert granted(pool(demand)) == ()
    assert len(pool.state.holds[0].ids) == pages
    assert pool.entry(1).swa_ids


def test_sglang_26302_a_full_only_demand_asks_nothing_of_swa() -> None:
    """A load of FULL pages alone evicted for the smaller of both sides' room: 4 pages for nothing."""
    pool = Judged(layout("swa2", 992, SWA=320, FULL=32))
    pool.insert(1)
    assert fits(pool.state, Demand(full_pages=10))
    assert fits(pool.state, Demand(swa_pages=1))
    assert not fits(pool.state, Demand(swa_pages=2))
    assert granted(pool(tail_demand(5, 0))) == ()


def test_sglang_4987_eviction_stops_at_what_was_asked() -> None:
    """An eviction loop on the host never counted what it freed, and evicted all. Device leaves stand for host ones."""
    pool = Judged(swa2(10))
    for key in range(5):
        pool.insert(key)
    assert granted(pool(alloc(1))) == leaves(0)


def test_sglang_27586_a_tombstone_forgets_its_page() -> None:
    """A tombstoned node kept the map to its SWA page; restoring it freed the page that another request had by then."""
    pool = Judged(swa2(5))
    pool.insert(1)
    pool.insert(1, 2)
    pool(op.LockPrefix(name="x", key=prefix(1, 2)))
    assert granted(pool(alloc(1))) == (Step(kind="tombstone", key=prefix(1)),)
    (taken,) = pool.state.holds[0].ids
    pool(op.Unlock(name="x"))
    assert granted(pool(alloc(1, "other"))) == (Step(kind="leaf", key=prefix(1, 2)),)
    pool(op.Free(name="other"))
    pool.insert(1)
    assert pool.entry(1).swa_ids == pool.entry(1).ids
    assert pool.live("SWA").keys() == {taken, *pool.entry(1).ids}
    assert len(set(pool.live("SWA").values())) == 2


def test_sglang_36135_a_grouped_free_does_not_meet_a_recovery() -> None:
    """A queued free of SWA looked its page up only at the end of the group, after a recovery had mapped a new one.

    SWA pages that leave the window are never queued here; what the request recovers meanwhile stays its own.
    """
    pool = Judged(swa2(8))
    pool.hold("v", 1)
    pool.hold("u", 1)
    pool(op.GroupBegin())
    pool(op.FreeWindow(name="v"))
    pool(op.Free(name="u"))
    assert granted(pool(op.Recover(name="v"))) == ()
    pool(op.GroupEnd())
    (hold,) = pool.state.holds
    assert pool.live("SWA").keys() == pool.live("FULL").keys() == set(hold.ids) == set(hold.swa_ids)
    assert len(hold.ids) == 1


def test_sglang_38519_unbound_pages_are_not_freed() -> None:
    """Freeing the SWA pages of a segment, one of two unbound, put page 0 or -1 on the free list (also #38269)."""
    pool = Judged(swa2(6))
    assert granted(pool(tail_demand(2, 1))) == ()
    assert len(pool.state.holds[0].ids) == 2
    assert len(pool.state.holds[0].swa_ids) == 1
    pool(op.FreeWindow(name="r"))
    assert pool.state.member("SWA").free_pages == (1, 2, 3, 4, 5, 6)
    pool(op.Free(name="r"))
    bare = Pool(swa2(6))
    with pytest.raises(UnknownIdError, match="SWA"):
        bare.free(Hold(name="", swa_ids=(VirtualId(1),)))


def test_sglang_25805_recycled_ids_carry_no_old_swa_page() -> None:
    """Ids that came back without an SWA page still mapped to that of their former owner, which was freed twice."""
    pool = Judged(swa2(6))
    first = pool(op.Extend(name="a", prefix_lens=(TokenCount(0),), seq_lens=(TokenCount(2),)))
    pool(op.Free(name="a"))
    again = pool(tail_demand(2, 1))
    assert isinstance(first, Granted)
    assert isinstance(again, Granted)
    assert {i for _, i in again.pages} == {i for _, i in first.pages}
    assert pool.live("SWA").keys() == {max(i for _, i in again.pages)}
    pool.insert(1)
    pool(op.Free(name="r"))
    assert len(pool.live("SWA")) == len(pool.live("FULL")) == 1


def test_sglang_36350_an_early_release_gives_back_its_own_lock_only() -> None:
    """An early release of a window took the lock of another request, on a node that was a tombstone when it locked."""
    pool = Judged(layout("swa2", 32 * 9, window_tokens=2, SWA=32, FULL=32))
    pool.insert(1)
    pool.insert(1, 2, 3)
    pool(op.LockPrefix(name="A", key=prefix(1, 2, 3)))
    pool.hold("spare", 1)
    assert granted(pool(tail_demand(1, 0))) == (Step(kind="tombstone", key=prefix(1)),)
    pool(op.Free(name="spare"))
    pool.insert(1)
    pool(op.LockPrefix(name="B", key=prefix(1)))
    pool(op.UnlockWindow(name="A"))
    assert pool.entry(1).swa_locks == 1
    assert pool.entry(1, 2, 3).swa_locks == 0
    assert granted(pool(alloc(1, "more"))) == (Step(kind="tombstone", key=prefix(1, 2, 3)),)
    pool(op.UnlockWindow(name="A"))
    assert pool.entry(1).swa_locks == 1


def test_sglang_36770_all_states_locked_is_a_rejection() -> None:
    """With every state locked, an eviction that was only a convenience failed an assertion (also #40128)."""
    pool = Judged(layout("mamba2", 256, STATE=64, FULL=32))
    for key in (1, 2):
        pool.insert(key, state=True)
        pool(op.LockPrefix(name=str(key), key=prefix(key)))
    outcome = pool(op.AllocStates(name="r", count=1))
    assert isinstance(outcome, Rejected)
    assert outcome.reason == Blocked(by=("locks",))
    pool(op.Unlock(name="2"))
    assert granted(pool(op.AllocStates(name="r", count=1))) == leaves(2)


def test_sglang_28246_out_of_window_pages_count_once_freed() -> None:
    """A request was retracted for want of one SWA page while 8 that had left the window were about to be freed."""
    pool = Judged(swa2(17))
    pool.hold("r", 8)
    before = pool.state
    assert isinstance(pool(decode(9)), Rejected)
    assert pool.state == before
    pool(op.FreeWindow(name="r"))
    assert granted(pool(decode(9))) == ()


def test_vllm_48489_tail_first_within_a_prefix_oldest_prefix_first() -> None:
    """Freed groups were flattened: of A = [1, 2] and B = [3, 4] the order was 4, 3, 2, 1 (also #48532)."""
    pool = Judged(swa2(8))
    pool.insert(1, 2)
    pool.insert(3, 4)
    order = [prefix(1, 2), prefix(1), prefix(3, 4), prefix(3)]
    assert granted(pool(alloc(4))) == tuple(Step(kind="leaf", key=key) for key in order)


def test_vllm_42948_no_cached_prefix_goes_while_there_is_room() -> None:
    """Allocations took the first blocks of cached prefixes while most of the pool was empty (also #42985)."""
    pool = Judged(swa2(40))
    pool.insert(1, 2, 3)
    for name in "abcde":
        pool.hold(name, 2)
    assert pool(op.Match(key=prefix(1, 2, 3))) == Done(matched_pages=3)


def test_vllm_39734_admission_prices_the_window_only() -> None:
    """A request of 100,000 tokens with a window of 1,000 was priced with 100,000 in both kinds of layers (#40946)."""
    geometry = layout("swa2", 32 * 103, page_tokens=1000, window_tokens=1000, SWA=32, FULL=32)
    pool = Judged(geometry)
    outcome = pool(alloc(100_000))
    assert isinstance(outcome, Rejected)
    assert isinstance(outcome.reason, Impossible)
    assert granted(pool(tail_demand(100_000, 1000))) == ()
    assert len(pool.live("FULL")) == 100
    assert len(pool.live("SWA")) == 1


def test_vllm_55800_windowed_pages_do_not_grow_with_the_sequence() -> None:
    """A draft model's window was priced with the full length, so that beyond 15,537 tokens nothing was admitted.

    The draft's blocks are as large as the others here: members of one chain share their tokens a page.
    """
    geometry = layout("swa2", 16 * (4 + 130 + 2) + 64 * 1000, page_tokens=16, window_tokens=2048, SWA=16, FULL=64)
    assert geometry.members[1].page_count == 1034
    pool = Judged(geometry)
    assert granted(pool(tail_demand(15_990, 2064))) == ()
    assert (len(pool.live("FULL")), len(pool.live("SWA"))) == (1000, 130)


def test_vllm_42571_one_id_twice_in_a_free() -> None:
    """The same block twice in one batch raised the count of free blocks by two."""
    pool = Pool(swa2(4))
    placed = pool.place(Demand(full_pages=1))
    assert placed is not None
    ((_, identifier),) = pool.take(Demand(full_pages=1), placed[0])
    before = pool.observe()
    with pytest.raises(DoubleFreeError):
        pool.free(Hold(name="", ids=(identifier, identifier)))
    assert pool.observe() == before


def test_lmcache_2942_an_allocation_never_waits_for_an_eviction() -> None:
    """With eviction switched off and the buffer full, an allocation waited for ever. Locks stand for the switch."""
    pool = Judged(swa2(4))
    for key in (1, 2):
        pool.insert(key)
        pool(op.LockPrefix(name=str(key), key=prefix(key)))
    outcome = pool(alloc(1))
    assert isinstance(outcome, Rejected)
    assert outcome.reason == Blocked(by=("locks",))


def test_lmcache_3189_a_pinned_part_pins_and_the_sweep_follows_the_need() -> None:
    """A batch was dropped whole though one layer was pinned, and in an amount not related to the need (#3187)."""
    pool = Judged(swa2(6))
    for key in (1, 2, 3):
        pool.insert(key)
    pool(op.LockPrefix(name="pin", key=prefix(1)))
    pool(op.Match(key=prefix(3)))
    assert granted(pool(alloc(1))) == leaves(2)
    assert pool.entry(1).swa_ids
    assert pool.entry(3).swa_ids


def test_nano_vllm_240_a_page_at_length_257_and_none_at_256() -> None:
    """Claimed to be off by one, and withdrawn (also #150): a control that the exact demand must agree with."""
    pool = Judged(layout("swa2", 32 * 9, page_tokens=256, window_tokens=256, SWA=32, FULL=32))
    assert pool(decode(256)) == Granted(compactions=(), walks=0)
    outcome = pool(decode(257))
    assert isinstance(outcome, Granted)
    assert len(outcome.pages) == 2


def test_mini_sglang_142_a_running_request_keeps_its_pages() -> None:
    """Pages found to be cached already were freed while the request's page table still pointed at them."""
    pool = Judged(swa2(12))
    pool.insert(1, 2)
    pool(op.LockPrefix(name="r", key=prefix(1, 2)))
    pool.hold("r", 1)
    (hold,) = pool.state.holds
    cached = {**pool.live("FULL")}
    pool.insert(1, 2, 3)
    assert pool(op.Insert(key=prefix(1, 2, 3))) == Done()
    assert pool.state.holds == (hold,)
    assert cached.items() <= pool.live("FULL").items()
