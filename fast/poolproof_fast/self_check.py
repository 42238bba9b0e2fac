"""Debug mode: after every operation W1-W5 hold of the abstraction, and nobody has written where only a reader may be.

[W6] is the caller's to check, who knows what was written; here each pending page must keep its bytes until the events
that it waits for have fired. Slow: meant for tests and for looking into a broken integration.
"""

from typing import TYPE_CHECKING
from zlib import crc32

from poolproof_spec import invariants

if TYPE_CHECKING:
    from poolproof_fast.pool import FastPool

RULES = (
    invariants.pages_in_range,
    invariants.extents_ordered,
    invariants.pages_and_ids_partition,
    invariants.swa_within_full,
    invariants.owned_once,
)


class BrokenPoolError(AssertionError):
    """An invariant does not hold: the pool, or whoever wrote to its arena or tables, is wrong."""


class SelfCheck:
    """What debug mode remembers between two operations."""

    def __init__(self, pool: "FastPool") -> None:
        self.pool = pool
        self._pending: dict[tuple[int, int], int] = {}
        """(member index, page) of each pending page: checksum of its bytes when it became pending."""

    def check(self) -> None:
        """Raises BrokenPoolError, with what was found."""
        from poolproof_fast.abstraction import abstraction

        state = abstraction(self.pool)
        for rule in RULES:
            found = rule(state)
            if found is not None:
                raise BrokenPoolError(f"{rule.__name__}: {found}")
        self._check_mirrors()
        self._check_pending()

    def _check_mirrors(self) -> None:
        """The device's tables are the host's, once brought up to date."""
        tables = self.pool.store.tables
        if not tables.apart or self.pool.in_step:
            return
        for index, (page_of, id_at) in enumerate(zip(tables.page_of_np, tables.id_at_np, strict=True)):
            for device, host in ((tables.device_page_of(index), page_of), (tables.device_id_at(index), id_at)):
                if (device.cpu().numpy() != host).any():
                    raise BrokenPoolError(f"device tables of member {index} differ from the host's")

    def _check_pending(self) -> None:
        store, now = self.pool.store, {}
        for flight in store.flights.unfired:
            for index, pages in flight.pending:
                for page in pages.tolist():
                    now[index, page] = crc32(store.arena.read_page(index, page))
        for place, checksum in now.items():
            if self._pending.get(place, checksum) != checksum:
                name = store.members[place[0]].name
                raise BrokenPoolError(f"{name}: page {place[1]} was written while a reader in flight may read it")
        self._pending = now
