import pytest

from poolproof_fast.events import Event, PlainEvent


def test_an_event_fires_once_and_stays_fired() -> None:
    event: Event = PlainEvent()
    assert not event.query()
    assert isinstance(event, PlainEvent)
    event.fire()
    assert event.query()
    event.wait()
    assert event.query()


def test_waiting_for_what_nothing_fires_is_an_error() -> None:
    event = PlainEvent()
    with pytest.raises(RuntimeError, match="expected fire"):
        event.wait()
    assert not event.query()


def test_waiting_lets_the_work_be_finished_once() -> None:
    finished: list[str] = []
    event = PlainEvent(on_wait=lambda: finished.append("forward"))
    assert not event.query()
    event.wait()
    event.wait()
    assert event.query()
    assert finished == ["forward"]


def test_a_callback_is_not_called_after_the_event_was_fired() -> None:
    event = PlainEvent(on_wait=lambda: pytest.fail("called"))
    event.fire()
    event.wait()
