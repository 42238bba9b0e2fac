"""One run at a time on a campaign's file: a second one would do the first one's work again."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from poolproof_conformance.campaigns.store import CampaignFileError


@contextmanager
def only_run(path: Path) -> Iterator[None]:
    """Holds a lock beside the file, which ends with this process, however that ends. Raises CampaignFileError."""
    beside = path.with_name(f"{path.name}.lock")
    with beside.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CampaignFileError(
                f"{path}: another run is at work on it",
                "wait for it, or give each --shard a file, then merge",
            ) from None
        try:
            yield
        finally:
            beside.unlink(missing_ok=True)
