from typing import get_args

import msgspec
import pytest

from poolproof_spec.operation import Alloc, AnyDemand, AnyOperation, DemandOperation, Extend, operation_name
from poolproof_spec.units import TokenCount

NAMES = """insert match lock unlock unlock_window alloc extend decode extend_tail alloc_states recover
free free_window group_begin group_end gate launch fire compact query capacity""".split()  # noqa: SIM905


def test_names_are_the_tags_of_the_wire() -> None:
    assert [kind.__struct_config__.tag for kind in get_args(AnyOperation)] == NAMES
    assert operation_name(Alloc(name="r", tokens=TokenCount(3))) == "alloc"


def test_demands_are_the_demand_operations() -> None:
    assert set(get_args(AnyDemand)) == {k for k in get_args(AnyOperation) if issubclass(k, DemandOperation)}


def test_an_operation_survives_json() -> None:
    extend = Extend(name="r", prefix_lens=(TokenCount(1),), seq_lens=(TokenCount(3),), may_wait=False)
    text = msgspec.json.encode(extend)
    assert text == b'{"op":"extend","name":"r","may_wait":false,"prefix_lens":[1],"seq_lens":[3]}'
    assert msgspec.json.decode(text, type=AnyOperation) == extend


@pytest.mark.parametrize("text", [b'{"op":"steal","name":"r"}', b'{"op":"fire","event":"e","extra":1}'])
def test_unknown_operations_and_fields_are_refused(text: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=AnyOperation)
