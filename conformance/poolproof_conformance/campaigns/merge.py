"""Several files of one campaign as one."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from poolproof_conformance.campaigns.recording import Recording
from poolproof_conformance.campaigns.store import CampaignFileError, Store


def merge_files(out: Path, paths: Sequence[Path]) -> Recording:
    """`out` with every job of the files, and of itself if it is there. Raises CampaignFileError."""
    for path in paths:
        if path.absolute() == out.absolute():
            raise CampaignFileError(f"{path}: is OUT as well", "name each file once, OUT first")
    with ExitStack() as stack:
        stores = [stack.enter_context(Store.read(path)) for path in paths]
        settings = stores[0].settings()
        for store in stores:
            if store.settings() != settings:
                raise CampaignFileError(
                    f"{store.path}: settings {store.settings()}, those of {stores[0].path} are {settings}",
                    "merge files of one campaign only: the same --seed, the same poolproof",
                )
        merged = Recording.write(out, settings)
        # The last run tells whether the whole is complete: it is not if one of the parts is partial.
        for store in sorted(stores, key=lambda store: store.run_state() == "partial"):
            merged.absorb(store)
    return merged
