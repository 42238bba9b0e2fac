"""A pool of one's own, first stage: states and keys and values in a half of the arena each, a free list for each half.

The cache is flat: a page for each prefix, found by the whole prefix. Nothing ever moves. It keeps its books (level 0),
and wastes memory: what one half lacks, the other may have.
"""

from msgspec.structs import replace

from poolproof_conformance.adapter import UnsupportedGeometryError
from poolproof_conformance.kit import PoolAdapter
from poolproof_spec.geometry import layout_name
from poolproof_spec.outcome import Answer, Done, Granted, Rejected, Step
from poolproof_spec.payload import read_stamp, stamped
from poolproof_spec.state import Entry, Hold, Lock, MemberState, PoolState

STATE, FULL = 0, 1


class SplitPool(PoolAdapter):
    """States in the lower half, keys and values in the upper one."""

    name = "own-split"
    cannot = ("reasons", "work", "in_flight", "gates", "groups", "refusals")

    def build(self, geometry):
        if layout_name(geometry) != "mamba2":
            raise UnsupportedGeometryError("this pool is one of states below and keys and values above")
        self.geometry, self.arena = geometry, bytearray(geometry.total_bytes)
        self.sizes = [member.page_bytes for member in geometry.members]
        self.names = [member.name for member in geometry.members]
        self.page_of = [{}, {}]  # of each member: id -> page
        self.free_ids = [list(geometry.id_range("state")), list(geometry.id_range("full"))]
        self.free_pages = self.divide(geometry.total_bytes // 2)
        self.cache = {}  # prefix -> [id of its last page, id of the state at its end or None, when it was used]
        self.requests, self.locks, self.clock = {}, {}, 0

    def divide(self, border):
        state, full = self.geometry.members
        pages = [state.usable_pages, full.usable_pages]
        return [
            [page for page in pages[STATE] if (page + 1) * state.page_bytes <= border],
            [page for page in reversed(pages[FULL]) if page * full.page_bytes >= border],
        ]

    # Demands

    def alloc(self, operation):
        return self.demand(operation, self.pages(operation.tokens))

    def extend(self, operation):
        lengths = zip(operation.prefix_lens, operation.seq_lens, strict=True)
        return self.demand(operation, sum(self.pages(seq) - self.pages(prefix) for prefix, seq in lengths))

    def decode(self, operation):
        return self.demand(operation, sum((n - 1) % self.geometry.page_tokens == 0 for n in operation.seq_lens))

    def alloc_states(self, operation):
        return self.demand(operation, 0, operation.count)

    def pages(self, tokens):
        return -(-tokens // self.geometry.page_tokens)

    def demand(self, operation, full, state=0):
        steps = self.make_room(state, full)
        if not self.fits(state, full):
            return Rejected(steps=tuple(steps))
        held = self.requests.setdefault(operation.name, [[], []])
        new = self.take(state, full)
        held[STATE] += new[STATE]
        held[FULL] += new[FULL]
        return Granted(steps=tuple(steps), pages=self.named(new))

    def fits(self, state, full):
        return state <= len(self.free_pages[STATE]) and full <= len(self.free_pages[FULL])

    def make_room(self, state, full):
        """Evict until it fits; states help only states."""
        steps = []
        while not self.fits(state, full):
            order = self.evictable()
            if state > len(self.free_pages[STATE]):
                order = [step for step in order if self.cache[step.key][1] is not None]
            if not order:
                break
            steps.append(order[0])
            self.evict(order[0])
        return steps

    def take(self, state, full):
        return [[self.bind(index) for _ in range(count)] for index, count in ((STATE, state), (FULL, full))]

    def bind(self, index):
        identifier, page = self.free_ids[index].pop(0), self.free_pages[index].pop(0)
        self.page_of[index][identifier] = page
        return identifier

    def release(self, index, identifier):
        self.free_pages[index].append(self.page_of[index].pop(identifier))
        self.free_ids[index].append(identifier)

    def named(self, new):
        return tuple((self.names[index], identifier) for index in (STATE, FULL) for identifier in new[index])

    def free(self, operation):
        for index, ids in enumerate(self.requests.pop(operation.name)):
            for identifier in ids:
                self.release(index, identifier)
        return Done()

    # The cache

    def insert(self, operation):
        prefixes = [operation.key[:length] for length in range(1, len(operation.key) + 1)]
        missing = [prefix for prefix in prefixes if prefix not in self.cache]
        with_state = operation.state and (operation.key in missing or self.cache[operation.key][1] is None)
        if not self.fits(int(with_state), len(missing)):
            return Rejected()
        new = self.take(int(with_state), len(missing))
        for prefix, identifier in zip(missing, new[FULL], strict=True):
            self.cache[prefix] = [identifier, None, 0]
        if with_state:
            self.cache[operation.key][1] = new[STATE][0]
        self.used(missing)
        return Done(pages=self.named(new))

    def used(self, prefixes):
        self.clock += 1
        for prefix in prefixes:
            self.cache[prefix][2] = self.clock

    def find(self, key):
        found = ()
        for length in range(1, len(key) + 1):
            if key[:length] not in self.cache:
                break
            if self.geometry.page_tokens > 1 or self.cache[key[:length]][1] is not None:
                found = key[:length]
        return found

    def match(self, operation):
        return Done(matched_pages=len(self.find(operation.key)))

    def lock(self, operation):
        found = self.find(operation.key)
        if found:
            self.locks[operation.name] = Lock(name=operation.name, key=found)
        return Done(matched_pages=len(found))

    def unlock(self, operation):
        del self.locks[operation.name]
        return Done()

    def unlock_window(self, operation):
        self.locks[operation.name] = replace(self.locks[operation.name], window_released=True)
        return Done()

    def locked(self, prefix):
        """Whether its page, and its state, are locked."""
        above = [lock for lock in self.locks.values() if lock.key[: len(prefix)] == prefix]
        return bool(above), any(lock.key == prefix and not lock.window_released for lock in above)

    def evictable(self):
        """Prefixes that nothing extends, the longest unused first; then states alone."""
        by_age = sorted(self.cache, key=lambda prefix: (self.cache[prefix][2], -len(prefix), prefix))
        extended = {prefix[:-1] for prefix in self.cache}
        leaves = [prefix for prefix in by_age if prefix not in extended and not any(self.locked(prefix))]
        states = [prefix for prefix in by_age if self.cache[prefix][1] is not None and not self.locked(prefix)[1]]
        return [Step(kind="leaf", key=prefix) for prefix in leaves] + [
            Step(kind="state", key=prefix) for prefix in states if prefix not in leaves
        ]

    def evict(self, step):
        identifier, state, _ = self.cache[step.key]
        if state is not None:
            self.release(STATE, state)
        self.cache[step.key][1] = None
        if step.kind == "leaf":
            self.release(FULL, identifier)
            del self.cache[step.key]

    # What the harness asks

    def query(self, operation):
        return Answer(token_pages=self.available())

    def available(self):
        return max(n for n in range(len(self.free_ids[FULL]) + 1) if self.fits(0, n))

    def write(self, member, identifier, stamp):
        index = self.names.index(member)
        start, size = self.page_of[index][identifier] * self.sizes[index], self.sizes[index]
        self.arena[start : start + size] = stamped(stamp, size)

    def read(self, index, page):
        return read_stamp(bytes(self.arena[page * self.sizes[index] : (page + 1) * self.sizes[index]]))

    def observe(self):
        payloads = [
            (self.names[index], identifier, self.read(index, page))
            for index in (STATE, FULL)
            for identifier, page in self.page_of[index].items()
        ]
        return PoolState(
            geometry=self.geometry,
            members=tuple(MemberState(bindings=tuple(sorted(pages.items()))) for pages in self.page_of),
            entries=tuple(self.entry(prefix, *kept) for prefix, kept in sorted(self.cache.items())),
            holds=tuple(
                Hold(name=name, ids=tuple(ids[FULL]), state_ids=tuple(ids[STATE]))
                for name, ids in sorted(self.requests.items())
            ),
            locks=tuple(self.locks[name] for name in sorted(self.locks)),
            free_token_ids=tuple(sorted(self.free_ids[FULL])),
            free_state_ids=tuple(sorted(self.free_ids[STATE])),
            payloads=tuple(sorted(payloads)),
        )

    def entry(self, prefix, identifier, state, last_use):
        full_locked, state_locked = self.locked(prefix)
        caches_states = self.geometry.page_tokens == 1
        return Entry(
            key=prefix,
            ids=(identifier,),
            state_id=state,
            full_locks=int(full_locked),
            state_locks=int(state_locked and caches_states),
            last_use=last_use,
        )
