"""Symmetry: states that differ in names alone are one. Ids always; prefixes, requests and handles where they may swap.

What may swap is read off the alphabet: renamings of page keys, of request names and of lock handles that leave the set
of operations as it is. Every rule and every decision of the model treats such names alike, so that one representative
of each class is enough: what holds of it holds of all.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, permutations, product
from typing import Any, NamedTuple

from msgspec.structs import replace

from poolproof_conformance.explorer.configuration import Configuration
from poolproof_conformance.explorer.snapshot import Frozen, image
from poolproof_spec import operation as op


class Renaming(NamedTuple):
    """Old name to new, of three kinds."""

    pages: Mapping[int, int]
    """Page keys."""
    requests: Mapping[str, str]
    handles: Mapping[str, str]

    def of_key(self, key: Iterable[int]) -> tuple[int, ...]:
        """A prefix in the new names."""
        return tuple(self.pages[page] for page in key)

    def of_operation(self, operation: op.AnyOperation) -> op.AnyOperation:
        """The operation in the new names."""
        new: dict[str, Any] = {}
        if isinstance(operation, op.Insert | op.Match | op.LockPrefix):
            new["key"] = self.of_key(operation.key)
        match operation:
            case op.DemandOperation(name=name) | op.Free(name=name) | op.FreeWindow(name=name):
                new["name"] = self.requests[name]
            case op.LockPrefix(name=name) | op.Unlock(name=name) | op.UnlockWindow(name=name):
                new["name"] = self.handles[name]
            case op.Launch(writes=writes):
                new["writes"] = tuple(sorted(self.requests[name] for name in writes))
        return replace(operation, **new) if new else operation


def renamings(configuration: Configuration) -> list[Renaming]:
    """Every renaming that leaves the alphabet as it is, the identity first."""
    pages: set[int] = set()
    requests: set[str] = set()
    handles: set[str] = set()
    for operation in configuration.operations:
        match operation:
            case op.Insert(key=key) | op.Match(key=key):
                pages |= {*key}
            case op.LockPrefix(name=name, key=key):
                pages |= {*key}
                handles.add(name)
            case op.Unlock(name=name) | op.UnlockWindow(name=name):
                handles.add(name)
            case op.DemandOperation(name=name) | op.Free(name=name) | op.FreeWindow(name=name):
                requests.add(name)
            case op.Launch(writes=writes):
                requests |= {*writes}
    alphabet = set(configuration.operations)
    every = (Renaming(*three) for three in product(_orders(pages), _orders(requests), _orders(handles)))
    return [renaming for renaming in every if {renaming.of_operation(o) for o in alphabet} == alphabet]


def _orders(names: Iterable[Any]) -> list[dict[Any, Any]]:
    first = sorted(names)
    return [dict(zip(first, order, strict=True)) for order in permutations(first)]


class Representative:
    """Finds the representative of a state's class: the least image of all its renamings."""

    def __init__(self, configuration: Configuration) -> None:
        geometry = configuration.geometry
        self.renamings = renamings(configuration)
        self.state_members = set(geometry.with_role("state"))
        self.id_ranges = geometry.id_range("full"), geometry.id_range("state")

    def of(self, frozen: Frozen) -> bytes:
        """The image of the representative. A pool that keeps more than the model does stands for itself."""
        if frozen[-1]:
            return image(frozen)
        return min(image(self.with_first_ids(named(frozen, renaming))) for renaming in self.renamings)

    def with_first_ids(self, frozen: Frozen) -> Frozen:
        """The state with ids numbered in the order of their owners: nodes, requests, the open group."""
        pages, pending, gate, flights, _, _, nodes, locks, holds, group, queued, extras = frozen
        owned = chain((i for _, ids, *_ in nodes for i in ids), (i for hold in (*holds, queued) for i in hold[1]))
        of_state = chain((n[3] for n in nodes if n[3] is not None), (i for hold in (*holds, queued) for i in hold[3]))
        token, state = (
            dict(zip(dict.fromkeys(ids), space, strict=False))
            for ids, space in zip((owned, of_state), self.id_ranges, strict=True)
        )

        def renumbered(pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
            return tuple(sorted((m, (state if m in self.state_members else token)[i]) for m, i in pairs))

        def held(hold: Frozen) -> Frozen:
            name, ids, swa_ids, state_ids = hold
            return name, *(tuple(token[i] for i in some) for some in (ids, swa_ids)), tuple(state[i] for i in state_ids)

        return (
            tuple(
                tuple(sorted(_numbered(t, state if m in self.state_members else token))) for m, t in enumerate(pages)
            ),
            pending,
            gate,
            tuple((event, renumbered(reads), renumbered(writes)) for event, reads, writes in flights),
            tuple(self.id_ranges[0][len(token) :]),
            tuple(self.id_ranges[1][len(state) :]),
            tuple(
                (k, tuple(token[i] for i in ids), swa, s if s is None else state[s], r) for k, ids, swa, s, r in nodes
            ),
            locks,
            tuple(held(hold) for hold in holds),
            group,
            held(queued),
            extras,
        )


def _numbered(table: Iterable[tuple[int, int]], number: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    return ((number[identifier], page) for identifier, page in table)


def named(frozen: Frozen, renaming: Renaming) -> Frozen:
    """The state in other names."""
    *arena, nodes, locks, holds, group, queued, extras = frozen
    return (
        *arena,
        tuple(sorted((renaming.of_key(key), *rest) for key, *rest in nodes)),
        tuple(sorted((renaming.handles[name], renaming.of_key(key), released) for name, key, released in locks)),
        tuple(sorted((renaming.requests.get(name, name), *rest) for name, *rest in holds)),
        group,
        queued,
        extras,
    )
