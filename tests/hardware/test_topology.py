"""Which links lie between two devices, and who shares them."""

from __future__ import annotations

import itertools

import pytest

from dtflab.hardware.catalogue import bus, network
from dtflab.hardware.machines import machines_for
from dtflab.hardware.topology import path

W = "/job:worker/replica:0/task:{}/device:{}:{}"
PS = "/job:ps/replica:0/task:{}/device:CPU:0"


def cluster(**options):
    """Two workers on hosts of their own, a ps next to the first, another alone."""
    tasks = {"/job:ps/task:0": "h0", "/job:ps/task:1": "h2", "/job:worker/task:0": "h0", "/job:worker/task:1": "h1"}
    return machines_for(tasks, **{"gpus": 8, "gpu": "K40", "cpu": "Xeon E5-2690 v3", **options})


def names(machines, source, target):
    return [link.name for link in path(machines, source, target)]


def test_nothing_lies_within_a_device():
    machines = cluster()
    for device in (W.format(0, "CPU", 0), W.format(1, "GPU", 3), PS.format(1)):
        assert path(machines, device, device) == ()
    assert path(machines, W.format(0, "CPU", 0), W.format(0, "CPU", 1)) == ()


def test_inside_a_host_lanes_lead_to_memory_and_to_other_cards():
    machines = cluster(bus="pcie3")
    assert names(machines, W.format(0, "CPU", 0), W.format(0, "GPU", 2)) == ["h0 GPU 2 lanes down"]
    assert names(machines, W.format(0, "GPU", 2), W.format(0, "CPU", 0)) == ["h0 GPU 2 lanes up"]
    assert names(machines, W.format(0, "GPU", 2), W.format(0, "GPU", 5)) == ["h0 GPU 2 lanes up", "h0 GPU 5 lanes down"]


def test_cards_behind_a_switch_share_its_uplink_and_copy_to_each_other_without():
    machines = cluster(bus="pcie3-tree")
    up = [path(machines, W.format(0, "GPU", card), W.format(0, "CPU", 0)) for card in range(8)]
    assert [links[1].name for links in up] == ["h0 PCIe switch 0 up"] * 4 + ["h0 PCIe switch 1 up"] * 4
    assert len({id(links[1]) for links in up}) == 2 and len({id(links[0]) for links in up}) == 8
    assert names(machines, W.format(0, "GPU", 0), W.format(0, "GPU", 3)) == ["h0 GPU 0 lanes up", "h0 GPU 3 lanes down"]
    assert names(machines, W.format(0, "GPU", 0), W.format(0, "GPU", 4)) == [
        "h0 GPU 0 lanes up", "h0 PCIe switch 0 up", "h0 PCIe switch 1 down", "h0 GPU 4 lanes down",
    ]  # fmt: skip


def test_cards_of_two_sockets_meet_between_them():
    machines = cluster(bus="pcie3", cpu="2x Xeon E5-2690 v3")
    assert names(machines, W.format(0, "GPU", 3), W.format(0, "GPU", 4))[1:-1] == ["h0 socket 0 to 1"]
    assert names(machines, W.format(0, "GPU", 4), W.format(0, "GPU", 3))[1:-1] == ["h0 socket 1 to 0"]
    assert names(machines, W.format(0, "GPU", 4), W.format(0, "GPU", 7))[1:-1] == []


@pytest.mark.parametrize("kind", ["nvlink1", "nvlink2", "nvlink3", "nvlink4", "nvswitch"])
def test_nvlink_is_for_cards_and_pcie_for_memory(kind):
    machines = cluster(bus=kind, cpu="2x EPYC 7742")
    between = path(machines, W.format(0, "GPU", 0), W.format(0, "GPU", 7))
    assert [link.name for link in between] == ["h0 GPU 0 NVLink out", "h0 GPU 7 NVLink in"]
    assert {link.bandwidth for link in between} == {bus(kind).peer_bandwidth}
    assert sum(link.latency_s for link in between) == bus(kind).latency_s
    assert path(machines, W.format(0, "GPU", 0), W.format(0, "CPU", 0))[0].bandwidth == bus(kind).bandwidth


def test_between_hosts_a_message_passes_cards_and_switches():
    machines = cluster(bus="pcie3-tree", network="10Gb/s")
    links = path(machines, W.format(0, "GPU", 1), W.format(1, "GPU", 6))
    assert [link.name for link in links] == [
        "h0 GPU 1 lanes up", "h0 PCIe switch 0 up", "h0 egress", "h1 ingress", "h1 PCIe switch 1 down",
        "h1 GPU 6 lanes down",
    ]  # fmt: skip
    on_wire = [link for link in links if "gress" in link.name]
    assert [link.bandwidth for link in on_wire] == [1.25e9] * 2
    assert sum(link.latency_s for link in on_wire) == network("10Gb/s").nic.latency_s + 1e-6


def test_tasks_of_one_host_talk_through_its_memory():
    machines = cluster()
    (link,) = path(machines, PS.format(0), W.format(0, "CPU", 0))
    assert link.name == "h0 loopback"
    assert link.bandwidth == machines.hosts[0].cpu.memory_bandwidth / 2
    assert path(machines, W.format(0, "CPU", 0), PS.format(0)) == (link,)
    assert names(machines, W.format(0, "GPU", 0), PS.format(0)) == ["h0 GPU 0 lanes up", "h0 loopback"]


def test_links_of_one_name_are_one_object_and_all_directions_are_two():
    machines = cluster(bus="pcie3-tree", racks=2)
    seen = {}
    for source, target in itertools.permutations(machines.devices, 2):
        for link in path(machines, source, target):
            assert seen.setdefault(link.name, link) is link
    for source, target in itertools.permutations(machines.devices, 2):
        there = [link for link in path(machines, source, target) if "loopback" not in link.name]
        back = path(machines, target, source)
        assert not set(there) & set(back)
        assert sum(link.latency_s for link in there) == pytest.approx(
            sum(link.latency_s for link in back if "loopback" not in link.name)
        )


def test_every_worker_s_message_to_a_ps_enters_by_one_link():
    tasks = {"/job:ps/task:0": "p", **{f"/job:worker/task:{i}": f"h{i}" for i in range(20)}}
    machines = machines_for(tasks)
    ends = {path(machines, W.format(i, "CPU", 0), PS.format(0))[-1] for i in range(20)}
    starts = {path(machines, W.format(i, "CPU", 0), PS.format(0))[0] for i in range(20)}
    assert len(ends) == 1 and len(starts) == 20


def test_racks_share_an_oversubscribed_uplink():
    tasks = {f"/job:worker/task:{i}": f"h{i}" for i in range(100)}
    machines = machines_for(tasks, racks="40 at 4:1", network="10Gb/s")
    assert len(path(machines, W.format(0, "CPU", 0), W.format(39, "CPU", 0))) == 2
    out, up, down, into = path(machines, W.format(0, "CPU", 0), W.format(40, "CPU", 0))
    assert up.bandwidth == down.bandwidth == 40 * out.bandwidth / 4
    assert (up.name, down.name) == ("rack 0 uplink", "rack 1 downlink")
    assert path(machines, W.format(39, "CPU", 0), W.format(99, "CPU", 0))[1] is up
    assert into.latency_s == up.latency_s == machines.network.switch_latency_s, "three switches on the way"


def test_machines_do_not_share_links():
    one, other = cluster(), cluster()
    assert path(one, PS.format(0), PS.format(1)) != path(other, PS.format(0), PS.format(1))
    assert path(one, PS.format(0), PS.format(1)) == path(one, PS.format(0), PS.format(1))


def test_a_device_that_does_not_exist_is_told():
    with pytest.raises(ValueError, match="has no device"):
        path(cluster(), W.format(0, "GPU", 8), PS.format(0))
