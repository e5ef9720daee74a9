"""The catalogue: names, plausible numbers, and parts of one's own."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.gpu import CORES
from dtflab.graph import dtypes
from dtflab.hardware import catalogue
from dtflab.hardware.catalogue_cpus import CPUS
from dtflab.hardware.catalogue_gpus import GPUS
from dtflab.hardware.catalogue_links import BUSES, NICS, RACKS, SOCKETS, SWITCHES
from dtflab.hardware.parts import Bus, Network, Nic, Processor, Rack, Switch
from dtflab.machine import cards

EVERYTHING = [*GPUS.values(), *CPUS.values(), *BUSES.values(), SOCKETS, *NICS.values(), *SWITCHES.values(),
              *RACKS.values()]  # fmt: skip


# -- the numbers --------------------------------------------------------------------------------------------------


def test_every_card_has_speeds_and_every_speed_a_card():
    assert set(GPUS) == {model.name for model in cards.MODELS}
    assert all(GPUS[model.name].memory_bytes == model.memory_bytes for model in cards.MODELS)


@pytest.mark.parametrize("model", cards.MODELS, ids=lambda model: model.name)
def test_peaks_follow_from_cores_and_clock(model):
    """Data sheets name another clock than drivers do, but none that differs by more than a tenth."""
    gpu = GPUS[model.name]
    cores = {**CORES, (2, 0): 32}[model.compute_capability] * model.multiprocessors
    assert gpu.peak() == pytest.approx(cores * 2e9 * model.clock_ghz, rel=0.1)
    share = {(2, 0): 1 / 2, (3, 0): 1 / 24, (3, 5): 1 / 3, (3, 7): 1 / 3, (5, 2): 1 / 32, (6, 0): 1 / 2, (6, 1): 1 / 32,
             (7, 0): 1 / 2, (7, 5): 1 / 32, (8, 0): 1 / 2, (8, 6): 1 / 64, (8, 9): 1 / 64, (9, 0): 1 / 2}  # fmt: skip
    assert gpu.peak("float64") == pytest.approx(gpu.peak() * share[model.compute_capability], rel=0.02)


def test_a_few_numbers_of_data_sheets():
    assert catalogue.gpu("K40").peak() == 4.29e12
    assert catalogue.gpu("V100").peak("float16") == 125.3e12
    assert catalogue.gpu("A100-80GB").memory_bandwidth == 2039e9
    assert catalogue.cpu("Xeon E5-2690 v3").peak() == 12 * 2.6e9 * 32
    assert catalogue.bus("pcie3").bandwidth == pytest.approx(15.7538e9, rel=1e-4)
    assert catalogue.nic("InfiniBand QDR").bandwidth == 4e9
    assert catalogue.nic("InfiniBand EDR").bandwidth == 12.5e9


def test_everything_is_plausible_and_says_where_it_is_from():
    assert all(len(part.source) > 10 for part in EVERYTHING)
    for processor in (*GPUS.values(), *CPUS.values()):
        assert 0.05e12 < processor.peak("float64") < processor.peak() < processor.peak("float16") * 1.001 < 1e15
        assert 3e10 < processor.memory_bandwidth < 4e12 and 1e-7 < processor.launch_s < 1e-4
        assert 1 << 30 < processor.memory_bytes < 1 << 40 and 1 < processor.cores < 200
    assert all(1e9 < bus.bandwidth < 1e11 and 0 < bus.latency_s < 1e-4 for bus in BUSES.values())
    assert all(1e8 < nic.bandwidth < 1e11 and 0 < nic.latency_s < 1e-3 for nic in NICS.values())


def test_names_are_names_of_one_part():
    assert len({(type(part), part.name) for part in EVERYTHING}) == len(EVERYTHING)


# -- types of numbers -----------------------------------------------------------------------------------------------


def test_what_a_card_cannot_compute_in_it_computes_in_float32():
    k40, v100 = catalogue.gpu("K40"), catalogue.gpu("V100")
    assert k40.peak("float16") == k40.peak("bfloat16") == k40.peak("tf32") == k40.peak(dtypes.int32) == k40.peak()
    assert v100.peak(dtypes.float16) == pytest.approx(8 * v100.peak(), rel=0.01)
    assert v100.peak("bfloat16") == v100.peak()
    assert k40.peak("complex128") == k40.peak(dtypes.float64) == 1.43e12
    assert k40.peak(dtypes.float32_ref) == k40.peak() == k40.peak("complex64")


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "full"), [
    ("K80-die", "Tesla K80"), ("P100-PCIe", "Tesla P100-PCIE-16GB"), ("P100-SXM2", "Tesla P100-SXM2-16GB"),
    ("V100-SXM2", "Tesla V100-SXM2-16GB"), ("V100-SXM3", "Tesla V100-SXM3-32GB"), ("k20x", "Tesla K20Xm"),
    ("Tesla T4", "Tesla T4"), ("rtx 2080 ti", "GeForce RTX 2080 Ti"), ("A100-PCIe", "A100-PCIE-40GB"),
])  # fmt: skip
def test_gpus_are_found_by_the_names_that_people_write(name, full):
    assert catalogue.gpu(name).name == full


def test_parts_are_found_however_they_are_written():
    assert catalogue.cpu("xeon e5 2690v3").name == "Xeon E5-2690 v3"
    assert catalogue.cpu("Intel Xeon E5-2690 v3") is catalogue.cpu("Xeon E5-2690 v3")
    assert catalogue.bus("PCIe3 tree").name == "pcie3-tree"
    assert catalogue.nic("infiniband_edr").name == "InfiniBand EDR"
    assert catalogue.switch("Ethernet").latency_s == 1e-6
    assert catalogue.rack("40 at 4:1").oversubscription == 4


@pytest.mark.parametrize(("find", "message"), [
    (catalogue.gpu, "No GPU model 'abacus' is known. Choose one of K520, "),
    (catalogue.cpu, "Unknown CPU 'abacus'. Choose one of Xeon E5-2670, .*laptop, or give a part of your own."),
    (catalogue.bus, "Unknown bus 'abacus'. Choose one of pcie2, "),
    (catalogue.nic, "Unknown network card 'abacus'. Choose one of 1Gb/s, "),
    (catalogue.switch, "Unknown switch 'abacus'. Choose one of "),
    (catalogue.rack, "Unknown rack 'abacus'. Choose one of "),
    (catalogue.network, "Unknown network card 'abacus'. Choose one of 1Gb/s, "),
])  # fmt: skip
def test_an_unknown_name_gets_the_list(find, message):
    with pytest.raises(ValueError, match=message):
        find("abacus")
    with pytest.raises(ValueError, match=r"(Unknown|No) .*10\.5"):
        find(10.5)


def test_a_cpu_is_no_gpu():
    with pytest.raises(ValueError, match="'laptop' is a CPU; give a GPU here"):
        catalogue.gpu(CPUS["laptop"])
    with pytest.raises(ValueError, match="'Tesla K40m' is a GPU; give a CPU here"):
        catalogue.cpu(catalogue.gpu("K40"))


def test_two_sockets_have_everything_twice():
    one, two = catalogue.cpu("EPYC 7742"), catalogue.cpu("2x EPYC 7742")
    assert (two.sockets, two.cores, two.name) == (2, 128, "2x EPYC 7742")
    assert two.peak() == 2 * one.peak() and two.memory_bandwidth == 2 * one.memory_bandwidth


@pytest.mark.parametrize(("rate", "bandwidth"), [
    ("10Gb/s", 1.25e9), ("10 Gbit/s", 1.25e9), ("10Gbps", 1.25e9), ("25Gbit/s", 3.125e9), ("1.2GB/s", 1.2e9),
    ("100 Mb/s", 12.5e6), ("800Gb/s", 1e11), ("10 GBytes/s", 1e10), ("10 Gb/sec", 1.25e9),
])  # fmt: skip
def test_rates_are_read(rate, bandwidth):
    assert catalogue.nic(rate).bandwidth == bandwidth


def test_a_rate_of_the_catalogue_is_the_card_there_and_another_has_its_neighbours_latency():
    assert catalogue.nic("10 Gbit/s") is catalogue.nic("1.25GB/s") is NICS["10Gb/s"]
    assert catalogue.nic("12Gb/s").latency_s == NICS["20Gb/s"].latency_s
    assert catalogue.nic("1000Gb/s").latency_s == NICS["400Gb/s"].latency_s


@pytest.mark.parametrize("rate", ["10", "10Gb", "Gb/s", "ten Gb/s", "10Gb/h"])
def test_what_is_no_rate(rate):
    with pytest.raises(ValueError, match="Unknown network card"):
        catalogue.nic(rate)


@pytest.mark.parametrize("rate", ["0Gb/s", "-1Gb/s"])
def test_a_rate_of_nothing(rate):
    with pytest.raises(ValueError, match="carries no data"):
        catalogue.nic(rate)


def test_networks():
    plain = catalogue.network("10Gb/s")
    assert (plain.nic.name, plain.switch_latency_s, plain.hosts_per_rack) == ("10Gb/s", 1e-6, 0)
    fast = catalogue.network("InfiniBand EDR", racks="40 at 4:1")
    assert (fast.switch_latency_s, fast.hosts_per_rack, fast.oversubscription) == (1e-7, 40, 4)
    assert catalogue.network("1Gb/s", switch_="store-and-forward").switch_latency_s == 12e-6
    assert catalogue.network(fast) is fast


# -- parts of one's own ---------------------------------------------------------------------------------------------

MINE = Processor("Mine", "GPU", {"float32": 20e12}, 16 << 30, 600e9, 4e-6, 60, "its data sheet")


def test_a_part_may_stand_where_a_name_may():
    cores = dataclasses.replace(MINE, kind="CPU")
    assert catalogue.gpu(MINE) is MINE and catalogue.cpu(cores) is cores
    cable = Nic("cable", 1e9, 1e-5, "iperf")
    assert catalogue.nic(cable) is cable and catalogue.network(cable).nic is cable
    bus, shelf = Bus("wide", 1e11, 1e-6, "made up"), Rack("small", 2, 1.0, "made up")
    assert catalogue.bus(bus) is bus and catalogue.rack(shelf) is shelf


def test_an_added_part_is_known_by_its_name():
    for part in (
        MINE,
        dataclasses.replace(MINE, kind="CPU"),
        Bus("wide", 1e11, 1e-6, "x"),
        Nic("cable", 1e9, 1e-5, "x"),
        Switch("box", 1e-5, "x"),
        Rack("shelf", 3, 2.0, "x"),
    ):
        catalogue.add_hardware(part)
    assert catalogue.gpu("mine") is MINE
    assert catalogue.cpu("Mine").kind == "CPU"
    assert catalogue.bus("wide").bandwidth == 1e11
    assert catalogue.nic("cable").latency_s == 1e-5
    assert catalogue.network("cable", switch_="box", racks="shelf").switch_latency_s == 1e-5
    with pytest.raises(ValueError, match="add_hardware takes a Processor, Bus, Nic, Switch or Rack, not 'abacus'"):
        catalogue.add_hardware("abacus")
    card = cards.model("Mine")
    assert (card.memory_bytes, card.multiprocessors) == (16 << 30, 60)
    assert card.compute_capability >= cards.MINIMUM_COMPUTE_CAPABILITY


def test_a_name_that_is_taken_is_not_given_away():
    for name in ("K40", "tesla k40m", "P100-PCIe"):
        with pytest.raises(ValueError, match=f"has a GPU named '{name}' already"):
            catalogue.add_hardware(dataclasses.replace(MINE, name=name))


def test_a_part_of_ones_own_is_replaced_as_a_cell_that_runs_again_does():
    catalogue.add_hardware(MINE)
    catalogue.add_hardware(dataclasses.replace(MINE, cores=61))
    assert catalogue.gpu(MINE.name).cores == 61
    assert [model.name for model in cards.MODELS].count(MINE.name) == 1


@pytest.mark.parametrize(("changes", "message"), [
    ({"kind": "TPU"}, "kind is 'CPU' or 'GPU', not 'TPU'"),
    ({"peak_flops": {"float16": 1e12}}, "peak_flops must say at least float32"),
    ({"peak_flops": {"float32": 0}}, "float32 must be more than 0, not 0"),
    ({"memory_bandwidth": -1}, "memory_bandwidth must be more than 0, not -1"),
    ({"cores": 0}, "cores must be more than 0"),
    ({"memory_bytes": -1}, "memory_bytes must be more than 0"),
    ({"launch_s": -1e-6}, "launch_s must be 0 or more, not -1e-06"),
])  # fmt: skip
def test_a_processor_that_computes_nothing(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(MINE, **changes)


@pytest.mark.parametrize("make", [
    lambda: Bus("slow", 0, 0, "x"), lambda: Nic("slow", -1, 0, "x"), lambda: Rack("empty", 0, 1.0, "x"),
    lambda: Network(NICS["1Gb/s"], 0.0, 4, oversubscription=0),
])  # fmt: skip
def test_links_carry_something(make):
    with pytest.raises(ValueError, match="must be more than 0"):
        make()


@pytest.mark.parametrize("make", [
    lambda: Bus("early", 1e9, -1e-6, "x"), lambda: Nic("early", 1e9, -1e-6, "x"), lambda: Switch("early", -1e-6, "x"),
    lambda: Network(NICS["1Gb/s"], -1e-6),
])  # fmt: skip
def test_nothing_arrives_before_it_is_sent(make):
    with pytest.raises(ValueError, match="latency_s must be 0 or more"):
        make()
