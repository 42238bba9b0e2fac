"""Second stage: one arena for both, judged as a whole before anything is evicted (level 1).

States lie packed at the low end, keys and values at the high end, so that one comparison of bytes decides what fits.
Victims go one by one, the oldest first, and only once it is known that some number of them suffices.
"""

from level0 import FULL, STATE, SplitPool

from poolproof_spec.outcome import Answer


class JointPool(SplitPool):
    """Room is room, whoever had it before."""

    name = "own-joint"

    def divide(self, border):
        return [list(member.usable_pages) for member in self.geometry.members]

    def fits(self, state, full):
        return self.would_fit(len(self.page_of[STATE]) + state, len(self.page_of[FULL]) + full)

    def would_fit(self, states, pages):
        """Whether so many live pages of each lie in the arena together, packed to its ends."""
        low, high = self.geometry.members
        end, start = low.first_page + states, high.page_count - pages
        apart = not states or not pages or end * low.page_bytes <= start * high.page_bytes
        return end <= low.page_count and start >= high.first_page and apart

    def make_room(self, state, full):
        """The first steps, oldest first, that suffice; none where not even all of them do."""
        live = [len(self.page_of[STATE]) + state, len(self.page_of[FULL]) + full]
        steps = self.enough(live)
        for step in steps:
            self.evict(step)
        return steps

    def enough(self, live):
        kept = {prefix: list(page) for prefix, page in self.cache.items()}
        steps = []
        while not self.would_fit(*live):
            order = self.evictable()
            if not order:
                steps = []
                break
            step = order[0]
            steps.append(step)
            live = [live[STATE] - (self.cache[step.key][1] is not None), live[FULL] - (step.kind == "leaf")]
            self.cache[step.key][1] = None
            if step.kind == "leaf":
                del self.cache[step.key]
        self.cache = kept
        return steps

    def take(self, state, full):
        """Pack both ends, so that what was found to fit finds its place."""
        self.pack(STATE, list(self.geometry.members[STATE].usable_pages))
        self.pack(FULL, list(reversed(self.geometry.members[FULL].usable_pages)))
        return super().take(state, full)

    def pack(self, index, places):
        """Move pages into holes nearer to the member's end; free pages are listed from there on."""
        pages, size = self.page_of[index], self.sizes[index]
        wanted = set(places[: len(pages)])
        holes = [page for page in places[: len(pages)] if page not in pages.values()]
        for identifier in [identifier for identifier, page in pages.items() if page not in wanted]:
            source, target = pages[identifier], holes.pop()
            self.arena[target * size : (target + 1) * size] = self.arena[source * size : (source + 1) * size]
            pages[identifier] = target
        self.free_pages[index] = [page for page in places if page not in pages.values()]

    def capacity(self, operation):
        """Try for real: as many pages as are said to be there, then one more."""
        available = self.available()
        return Answer(
            token_pages=available, exact_granted=self.tried(available), one_more_granted=self.tried(available + 1)
        )

    def tried(self, count):
        if not self.fits(0, count):
            return False
        for identifier in self.take(0, count)[FULL]:
            self.release(FULL, identifier)
        return True
