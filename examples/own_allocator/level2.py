"""Third stage: the fewest victims, in an order of use that is kept exactly (level 2)."""

from level0 import FULL, STATE
from level1 import JointPool

from poolproof_spec.outcome import Done


class ExactPool(JointPool):
    """Nothing goes that could stay."""

    name = "own-exact"

    def enough(self, live):
        """Of the first sufficient steps those give way, newest first, without which it still fits."""
        steps = super().enough(live)
        for step in reversed(steps):
            fewer = [other for other in steps if other != step and not self.depends(other, step)]
            if step in steps and self.would_fit(*self.left(live, fewer)):
                steps = fewer
        return steps

    def depends(self, other, kept):
        """A prefix cannot go while a longer one that begins with it stays."""
        return other.kind == kept.kind == "leaf" and kept.key[: len(other.key)] == other.key

    def left(self, live, steps):
        states = sum(self.cache[step.key][1] is not None for step in steps)
        return [live[STATE] - states, live[FULL] - sum(step.kind == "leaf" for step in steps)]

    def insert(self, operation):
        done = super().insert(operation)
        if isinstance(done, Done):
            self.used(operation.key[:length] for length in range(1, len(operation.key) + 1))
        return done

    def match(self, operation):
        return self.touched(operation, super().match(operation))

    def lock(self, operation):
        return self.touched(operation, super().lock(operation))

    def touched(self, operation, done):
        """What was found is the newest."""
        self.used(operation.key[:length] for length in range(1, done.matched_pages + 1))
        return done
