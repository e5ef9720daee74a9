"""Each reader on some thousand inputs, always the same ones: a minute in all. `make fuzz` reads many more."""

from __future__ import annotations

import pytest

import dtflab as tf
from tests.fuzz.__main__ import main, rng_of
from tests.fuzz.targets import Finding, Target, mutated, outcome, targets

INPUTS = 150  # per share of a target
NAMES = (
    "tensor graph import services checkpoint checkpoint_v1 records events idx png example state meta_graph points "
    "faults"
).split()


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    with targets(tmp_path_factory.mktemp("fuzz")) as found:
        yield found


@pytest.fixture(autouse=True)
def quiet():
    """Files that can't be read are reported and ignored: not here."""
    before = tf.logging.get_verbosity()
    tf.logging.set_verbosity(tf.logging.FATAL)
    yield
    tf.logging.set_verbosity(before)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_input_is_read_or_refused_in_words(readers, name):
    target, seen = readers[name], set()
    for number in range(INPUTS * target.share):
        try:
            seen.add(outcome(target, mutated(target, rng_of(name, number))))
        except Finding as finding:
            pytest.fail(f"python -m tests.fuzz --again {name}:{number}\n{finding}")
    assert "read" in seen and len(seen) > 1, "all inputs look alike: are they mutated, and not too much?"


def test_all_targets_are_tested(readers):
    assert sorted(readers) == sorted(NAMES)


def test_every_seed_is_read(readers):
    """Else mutations would only find the first error of many. Some requests name what is not there."""
    unread = {n: i for n, target in readers.items() for i, s in enumerate(target.seeds) if outcome(target, s) != "read"}
    assert set(unread) <= {"services"}, unread


def test_a_wrong_exception_is_a_finding():
    def read(data):
        raise KeyError(data)

    with pytest.raises(Finding, match="KeyError: b'x'"):
        outcome(Target([], lambda data, rng: data, read, (ValueError,)), b"x")

    def refuse(data):
        raise ValueError("damaged")

    with pytest.raises(Finding, match=r"does not name a\.index"):
        outcome(Target([], lambda data, rng: data, refuse, (ValueError,), "a.index"), b"x")
    assert outcome(Target([], lambda data, rng: data, refuse, (ValueError,)), b"x") == "ValueError"


def test_the_command_counts_outcomes_and_reads_one_input_again(capsys, monkeypatch):
    monkeypatch.setattr("tests.fuzz.__main__.limit_memory", lambda: None)  # of this process
    assert main(["--inputs", "20", "--only", "png", "events"]) == 0
    said = capsys.readouterr().out
    assert "png: 10 inputs" in said and "events: 10 inputs" in said and "found" not in said
    assert main(["--again", "png:0"]) == 0
    assert capsys.readouterr().out.strip() in said
