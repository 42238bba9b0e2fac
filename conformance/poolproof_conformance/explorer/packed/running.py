"""A run of the packed engine: which policies it has, on which device, and what it found in the reference's terms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from poolproof_conformance.explorer.configuration import Configuration
from poolproof_conformance.explorer.counterexample import violations
from poolproof_conformance.explorer.exploration import Counts, Exploration
from poolproof_conformance.explorer.limits import Limits
from poolproof_conformance.explorer.packed.engine import PackedEngine
from poolproof_conformance.explorer.packed.fields import Model, PackedError
from poolproof_conformance.explorer.packed.lanes import NumPyBackend
from poolproof_conformance.explorer.packed.retrace import found_by
from poolproof_conformance.explorer.packed.stored import Stored
from poolproof_conformance.explorer.policies import REFERENCE, policy_named

POLICIES: dict[str, tuple[bool, bool]] = {
    REFERENCE: (True, True),
    "evicts-locked": (False, False),
    "skips-spare-pass": (True, False),
}
"""Policies that this engine has: whether each looks at locks, and whether it gives needless victims back."""


def backend_named(device: str) -> NumPyBackend:
    """numpy, cpu or cuda. Raises PackedError where there is no such device."""
    if device == "numpy":
        return NumPyBackend()
    from poolproof_conformance.explorer.packed.tensors import torch_backend  # torch takes its time to import

    return torch_backend(device)


def run_packed(
    configuration: Configuration,
    policy_name: str,
    *,
    symmetry: bool = False,
    device: str = "numpy",
    limits: Limits = Limits(),  # noqa: B008 - frozen
    checkpoint: Path | None = None,
    resume: bool = False,
    folder: Path | None = None,
    on_progress: Callable[[Counts], None] = lambda counts: None,
) -> Exploration:
    """Explore; violations are shown only once the policy's own pool has shown them. Raises PoolproofError."""
    if policy_name not in POLICIES:
        known = ", ".join(POLICIES)
        raise PackedError(f"the packed engine has no policy {policy_name!r}; it has {known}", "--engine reference")
    looks_at_locks, spares = POLICIES[policy_name]
    backend, model = backend_named(device), Model(configuration, symmetry)
    if model.words > backend.most_words:
        raise PackedError(f"{configuration.name}: a state has {model.bits} bits, torch sorts 63", "--device numpy")
    if resume and checkpoint is None:
        raise PackedError("--resume needs the folder of the checkpoint", "--checkpoint DIR --resume")
    stored = Stored(model, backend, folder=checkpoint, resume=resume, memory_bytes=limits.memory_bytes)
    engine = PackedEngine(model, stored, backend=backend, limits=limits, looks_at_locks=looks_at_locks, spares=spares)
    result = engine.run(policy_name, on_progress)
    policy = policy_named(policy_name)
    histories = {rule: found_by(engine, broken, policy) for rule, broken in engine.broken.items()}
    shown, others = violations(configuration, policy, [found for found in histories.values() if found], folder)
    doubts = [rule for rule, found in histories.items() if found is None] + [found.property for found in others]
    if doubts:
        reason = f"the packed engine finds {', '.join(doubts)} violated, and the policy's own pool does not show it"
        result = replace(result, verdict="violated" if shown else "unknown", reason=reason)
    return replace(result, violations=shown)
