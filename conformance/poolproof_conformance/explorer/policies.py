"""What can be explored: the reference, a pool that is wrong on purpose, or one that follows a released policy."""

from difflib import get_close_matches

import msgspec

from poolproof_conformance.adapter import Description
from poolproof_conformance.errors import PoolproofError
from poolproof_conformance.faulty.registry import FAULTY
from poolproof_conformance.policy_pools import PolicyAdapter, policy_pool
from poolproof_reference.joint_pool import JointPool
from poolproof_spec.policies_known import POLICIES

REFERENCE = "reference"


class ExploredPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """One pool class, and what it declares about itself."""

    name: str
    """As typed."""
    pool_class: type[JointPool]
    description: Description


def policy_names() -> list[str]:
    """Every name that can be typed."""
    return [REFERENCE, *POLICIES, *(wrong.name for wrong in FAULTY)]


def policy_named(name: str) -> ExploredPolicy:
    """The pool of that name. Raises PoolproofError."""
    if name == REFERENCE:
        return ExploredPolicy(name=name, pool_class=JointPool, description=Description(target=name))
    if name in POLICIES:
        return ExploredPolicy(name=name, pool_class=policy_pool(name), description=PolicyAdapter(name).describe())
    for wrong in FAULTY:
        if wrong.name == name:
            return ExploredPolicy(name=name, pool_class=wrong.pool_class, description=Description(target=name))
    near = get_close_matches(name, policy_names(), 3) or policy_names()[:3]
    raise PoolproofError(f"no policy {name!r}; near: {', '.join(near)}", "poolproof explore --list")
