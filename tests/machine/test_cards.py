"""The catalogue of cards, and TensorFlow's rules about their memory."""

from __future__ import annotations

import pytest

from dtflab.machine import cards

MIB = 1 << 20


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("K520", "GRID K520"),
        ("grid k520", "GRID K520"),
        ("K40", "Tesla K40m"),
        ("tesla-k40m", "Tesla K40m"),
        ("Titan", "GeForce GTX TITAN"),
        ("titan x", "GeForce GTX TITAN X"),
        ("GTX 1080 Ti", "GeForce GTX 1080 Ti"),
        ("A100", "A100-PCIE-40GB"),
        ("A100-80GB", "NVIDIA A100-SXM4-80GB"),
        ("h100", "NVIDIA H100 80GB HBM3"),
    ],
)
def test_a_model_is_found_by_its_names(name, full):
    assert cards.model(name).name == full


@pytest.mark.parametrize("name", ["K41", "", "Tesla", "GTX", "1080"])
def test_an_unknown_model_lists_the_known_ones(name):
    with pytest.raises(ValueError, match=r"No GPU model .* Choose one of K520, K20, K20X, K40, .*C2075"):
        cards.model(name)


def test_every_model_is_found_by_all_its_names_and_is_plausible():
    for model in cards.MODELS:
        assert {cards.model(name) for name in (model.name, *model.short)} == {model}
        assert cards.GIB < model.memory_bytes < 100 * cards.GIB and model.memory_bytes % 4096 == 0
        assert 0.5 < model.clock_ghz < 2.5 and 1 < model.multiprocessors < 200 and 50 < model.power_watts < 1000
    old = [model.name for model in cards.MODELS if model.compute_capability < cards.MINIMUM_COMPUTE_CAPABILITY]
    assert old == ["Tesla C2075"]


def test_the_cards_of_the_book():
    k520 = cards.DEFAULT
    assert (k520.name, k520.memory_bytes // MIB, k520.clock_ghz) == ("GRID K520", 4095, 0.797)
    assert cards.grab_all_limit(k520.memory_bytes) == 3928915968
    share = int(0.4 * k520.memory_bytes)
    assert -(-(share + cards.CONTEXT_BYTES) // MIB) == 1677, "as nvidia-smi shows a program at 0.4"


@pytest.mark.parametrize(
    ("available", "left"),
    [
        (100 * MIB, 225 * MIB),
        ((2 << 30) - 1, 225 * MIB),
        (2 << 30, 300 * MIB),
        (6000 * MIB, 300 * MIB),
        (6001 * MIB, int(6001 * MIB * 0.05)),
        (80 << 30, 4 << 30),
    ],
)
def test_what_is_left_to_the_system(available, left):
    assert cards.min_system_memory(available) == left


def test_a_small_card_is_taken_whole():
    """TensorFlow leaves nothing free where the reserve would be more than all."""
    taken = 200 * MIB - cards.IDLE_BYTES - cards.CONTEXT_BYTES
    assert cards.grab_all_limit(200 * MIB) == taken
    more = 300 * MIB - cards.IDLE_BYTES - cards.CONTEXT_BYTES
    assert cards.grab_all_limit(300 * MIB) == more - 225 * MIB


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("4GiB", 4 << 30),
        (" 512 MiB ", 512 << 20),
        ("4096MB", 4096 * 10**6),
        ("1.5gib", 3 << 29),
        ("64kib", 64 << 10),
        ("1TiB", 1 << 40),
        ("77", 77),
        ("77B", 77),
        (77, 77),
    ],
)
def test_amounts_of_memory(text, nbytes):
    assert cards.parse_memory(text) == nbytes


@pytest.mark.parametrize("text", ["", "GiB", "4 GiBs", "-1", -1, "4,5GiB", True, 1.5, "1e9", None, "4G4", "iB"])
def test_no_amounts_of_memory(text):
    with pytest.raises(ValueError, match=r"is not an amount of memory. Write a number of bytes, or for example '4GiB'"):
        cards.parse_memory(text)
