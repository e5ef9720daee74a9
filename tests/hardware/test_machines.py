"""Which tasks live on which hosts, and what they find there."""

from __future__ import annotations

import pytest

from dtflab.hardware.catalogue import cpu, gpu, network
from dtflab.hardware.machines import Machines, machines_for, task_of

TASKS = {"/job:ps/task:0": "a", "/job:worker/task:0": "b", "/job:worker/task:1": "c"}
PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:{}"


def test_what_a_cluster_is_given():
    machines = machines_for(TASKS, gpus=2, gpu="K40", network="25Gb/s", bus="pcie2", cpu="EPYC 7742", racks=2)
    assert [host.name for host in machines.hosts] == ["a", "b", "c"]
    assert [len(host.gpus) for host in machines.hosts] == [0, 2, 2]
    host = machines.hosts[1]
    assert (host.gpus[0], host.cpu, host.bus.name, host.nic.name) == (gpu("K40"), cpu("EPYC 7742"), "pcie2", "25Gb/s")
    assert machines.network.hosts_per_rack == 2
    assert machines.tasks == [PS, WORKER.format(0), WORKER.format(1)]
    assert machines.devices == [
        f"{PS}/device:CPU:0",
        *(f"{WORKER.format(i)}/device:{d}" for i in (0, 1) for d in ("CPU:0", "GPU:0", "GPU:1")),
    ]


def test_processors_of_devices():
    machines = machines_for(TASKS, gpus=1, gpu="P100")
    processor, host = machines.processor(WORKER.format(1) + "/device:GPU:0")
    assert (processor, host.name) == (gpu("P100"), "c")
    assert machines.processor(WORKER.format(1) + "/device:CPU:0") == (host.cpu, host)
    assert machines.processor(WORKER.format(1) + "/device:CPU:3") == (host.cpu, host)
    assert machines.processor("/job:worker/task:1/gpu:0")[0] is processor


def test_tasks_of_one_host_share_what_is_in_it():
    tasks = {"/job:ps/task:0": "a", "/job:worker/task:0": "a", "/job:worker/task:1": "a"}
    machines = machines_for(tasks, gpus=2, visible={"/job:worker/task:0": [0], "/job:worker/task:1": [1]})
    assert len(machines.hosts) == 1
    places = [machines.place(WORKER.format(i) + "/device:GPU:0") for i in (0, 1)]
    assert [place.card for place in places] == [0, 1] and places[0].host is places[1].host
    assert not any(device.startswith(PS) and "GPU" in device for device in machines.devices)


def test_visible_cards_are_counted_in_the_order_in_which_they_are_named():
    machines = machines_for({"/job:worker/task:0": "a"}, gpus=4, visible={"/job:worker/task:0": [3, 1]})
    assert [machines.place(WORKER.format(0) + f"/device:GPU:{i}").card for i in (0, 1)] == [3, 1]


def test_mixed_clusters():
    machines = machines_for(
        TASKS,
        gpus={"worker": 1},
        gpu={"/job:worker/task:1": "K80", "": "K40"},
        cpu={"ps": "Xeon E5-2670", "worker": "EPYC 7742"},
        nic={"a": "100Gb/s", "": "10Gb/s"},
    )
    a, b, c = machines.hosts
    assert [host.cpu.name for host in (a, b, c)] == ["Xeon E5-2670", "EPYC 7742", "EPYC 7742"]
    assert [host.nic.name for host in (a, b, c)] == ["100Gb/s", "10Gb/s", "10Gb/s"]
    assert (a.gpus, b.gpus, c.gpus) == ((), (gpu("K40"),), (gpu("K80"),))


def test_a_ps_has_cards_where_it_is_said_to():
    machines = machines_for({"/job:ps/task:0": "a"}, gpus={"ps": 1})
    assert machines.devices == [f"{PS}/device:CPU:0", f"{PS}/device:GPU:0"]


def test_a_session_without_a_cluster():
    machines = machines_for({"/job:localhost/task:0": "here"}, gpus=1, cpu="laptop")
    assert machines.processor("/job:localhost/replica:0/task:0/device:CPU:0")[0].name == "laptop"


@pytest.mark.parametrize(("options", "message"), [
    ({"gpus": -1}, "The number of GPUs of b must be 0 or more, not -1"),
    ({"gpus": True}, "must be 0 or more, not True"),
    ({"gpus": 1, "gpu": "K41"}, "No GPU model 'K41'"),
    ({"cpu": {"worker": "laptop"}}, r"cpu does not mention host a \(/job:ps/task:0\). Name it"),
    ({"racks": 0}, "racks is 0, but must be 1 or more"),
    ({"racks": True}, "racks is True, but must be 1 or more"),
    ({"gpus": 1, "visible": {"/job:worker/task:0": [1]}}, "visible lists card 1 for task .*, but b has 1 cards"),
    ({"visible": {"/job:chief/task:0": [0]}}, "visible names /job:chief/replica:0/task:0, but the tasks are"),
])  # fmt: skip
def test_what_does_not_fit_is_told(options, message):
    with pytest.raises(ValueError, match=message):
        machines_for(TASKS, **options)


def test_tasks_of_one_host_that_contradict_each_other():
    with pytest.raises(ValueError, match="cpu is 'laptop' and 'EPYC 7742' for tasks that share host a"):
        machines_for({"/job:ps/task:0": "a", "/job:worker/task:0": "a"}, cpu={"ps": "laptop", "worker": "EPYC 7742"})


def test_devices_that_do_not_exist():
    machines = machines_for(TASKS, gpus=1)
    with pytest.raises(ValueError, match=r"has no device .*GPU:1.*: it sees 1 cards"):
        machines.processor(WORKER.format(0) + "/device:GPU:1")
    with pytest.raises(
        ValueError, match="The task of device '/job:chief/task:0/cpu:0' is unknown; the tasks are /job:ps"
    ):
        machines.processor("/job:chief/task:0/cpu:0")
    with pytest.raises(ValueError, match="has no device"):
        machines.processor(WORKER.format(0) + "/device:TPU:0")


def test_hosts_and_homes_must_fit():
    host = machines_for(TASKS).hosts[0]
    with pytest.raises(ValueError, match="Two hosts have the same name"):
        Machines([host, host], network("10Gb/s"), {})
    with pytest.raises(ValueError, match="is on unknown host 'z'; the hosts are a"):
        Machines([host], network("10Gb/s"), {"/job:ps/task:0": "z"})


def test_names_of_tasks():
    assert task_of("/job:ps/task:3/cpu:0") == task_of("/job:ps/replica:0/task:3") == "/job:ps/replica:0/task:3"


def test_racks_are_filled_in_order():
    machines = machines_for({f"/job:worker/task:{i}": f"h{i}" for i in range(5)}, racks=2)
    assert [machines.rack_of(host) for host in machines.hosts] == [0, 0, 0, 1, 1]
    assert repr(machines) == "<5 tasks on 5 hosts with 0 GPUs, 10Gb/s>"
    assert repr(machines_for({"/job:worker/task:0": "h"})) == "<1 task on 1 host with 0 GPUs, 10Gb/s>"
