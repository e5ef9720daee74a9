"""The event engine: order, cancelling, and that it does not look back."""

from __future__ import annotations

from dtflab.virtual.engine import Engine


def test_events_come_by_time_then_in_the_order_of_asking():
    engine, seen = Engine(), []
    for time, name in ((2.0, "late"), (1.0, "a"), (1.0, "b"), (0.5, "early")):
        engine.at(time, seen.append, name)
    engine.run()
    assert seen == ["early", "a", "b", "late"]
    assert (engine.now, engine.turned) == (2.0, 4)


def test_an_event_may_ask_for_others_and_the_past_is_now():
    engine, seen = Engine(), []
    engine.at(1.0, lambda: engine.at(0.0, lambda: seen.append(engine.now)))
    engine.run()
    assert seen == [1.0]


def test_a_cancelled_event_does_not_come_and_takes_no_time():
    engine = Engine()
    number = engine.at(5.0, lambda: None)
    engine.at(1.0, lambda: None)
    engine.cancel(number)
    engine.run()
    assert engine.now == 1.0
    assert not engine.turn()


def test_run_stops_where_it_is_told_to():
    engine, seen = Engine(), []
    for time in (1.0, 2.0, 3.0):
        engine.at(time, seen.append, time)
    engine.run(until=2.0)
    assert seen == [1.0, 2.0]
