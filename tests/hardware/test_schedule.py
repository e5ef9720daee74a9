"""A placed graph in modelled time: hand-made cases, and laws over random graphs."""

from __future__ import annotations

import itertools
import random

import pytest

from dtflab.hardware.machines import Host, Machines, machines_for
from dtflab.hardware.parts import Bus, Network, Nic, Processor
from dtflab.hardware.schedule import Fabric, Message, Plan, Schedule, Span, Task, simulate

TASKS = [f"/job:worker/replica:0/task:{i}" for i in range(2)]
CPU = [f"{task}/device:CPU:0" for task in TASKS]
GPU = [f"{TASKS[0]}/device:GPU:{i}" for i in range(3)]
FAR = f"{TASKS[1]}/device:GPU:0"


def machines(cores=2, message_s=0.0, bus_s=0.0, net_s=0.0, rate=1.0) -> Machines:
    """Two hosts of three cards; a bus carries 8 bytes per second, the network 2, times `rate`."""
    parts = "made up"
    cpu = Processor("cpu", "CPU", {"float32": 1.0}, 1 << 40, 1.0, 0.0, cores, parts)
    gpu = Processor("gpu", "GPU", {"float32": 1.0}, 1 << 40, 1.0, 0.0, 8, parts)
    nic = Nic("nic", 2.0 * rate, net_s, parts)
    hosts = [Host(f"h{i}", cpu, (gpu,) * 3, Bus("bus", 8.0 * rate, bus_s, parts), nic) for i in range(2)]
    return Machines(
        hosts, Network(nic, 0.0, per_message_cpu_s=message_s), {task: f"h{i}" for i, task in enumerate(TASKS)}
    )


def times(schedule: Schedule) -> dict[str, tuple[float, float]]:
    return {name: (span.start, span.end) for name, span in schedule.tasks.items()}


# ---- processors ----


def test_a_chain_takes_the_sum_of_its_times():
    tasks = [Task("a", GPU[0], 1.0, outputs=(4,)), Task("b", GPU[0], 2.0, [("a", 0)], outputs=(4,)),
             Task("c", GPU[0], 4.0, [("b", 0)], ["a"])]  # fmt: skip
    schedule = simulate(tasks, machines())
    assert times(schedule) == {"a": (0, 1), "b": (1, 3), "c": (3, 7)}
    assert schedule.makespan == 7 and schedule.messages == []


def test_a_gpu_runs_one_at_a_time_in_the_order_of_readiness():
    tasks = [
        Task("late", GPU[0], 1.0, controls=["other"]),
        Task("long", GPU[0], 3.0),
        Task("other", GPU[0], 0.5),
        Task("later", GPU[0], 1.0, controls=["long"]),
    ]
    # At 3 "later" becomes ready, behind "other"; at 3.5 "late", behind both.
    expected = {"long": (0, 3), "other": (3, 3.5), "later": (3.5, 4.5), "late": (4.5, 5.5)}
    assert times(simulate(tasks, machines())) == expected


def test_a_host_has_so_many_cores_for_all_its_tasks():
    tasks = [Task(f"t{i}", CPU[0], 1.0) for i in range(5)]
    assert simulate(tasks, machines(cores=2)).makespan == 3
    assert simulate(tasks, machines(cores=4)).makespan == 2
    gpu = Processor("g", "GPU", {"float32": 1.0}, 1, 1.0, 0.0, 1, "made up")
    one = machines(cores=2)
    shared = Machines([Host("h", one.hosts[0].cpu, (gpu,), one.hosts[0].bus, one.hosts[0].nic)], one.network,
                      dict.fromkeys(TASKS, "h"))  # fmt: skip
    apart = [Task(f"t{i}", CPU[i % 2], 1.0) for i in range(4)]
    assert simulate(apart, shared).makespan == 2 and simulate(apart, one).makespan == 1
    cards = [Task("a", GPU[0], 1.0), Task("b", FAR, 1.0)]
    assert simulate(cards, shared).makespan == 2 and simulate(cards, one).makespan == 1  # one card, seen by two tasks


def test_what_takes_no_time_waits_for_no_processor():
    tasks = [Task("long", GPU[0], 5.0), Task("free", GPU[0], 0.0), Task("after", GPU[1], 1.0, controls=["free"])]
    assert times(simulate(tasks, machines())) == {"long": (0, 5), "free": (0, 0), "after": (0, 1)}


# ---- messages ----


def test_a_message_takes_its_latencies_and_its_bytes_over_the_slowest_link():
    tasks = [Task("a", GPU[0], 1.0, outputs=(16,)), Task("b", FAR, 1.0, [("a", 0)])]
    schedule = simulate(tasks, machines(bus_s=0.25, net_s=0.5))
    (message,) = schedule.messages
    assert message.arrived - message.sent == pytest.approx(16 / 2 + 0.25 + 0.5 + 0.25, rel=1e-12)
    assert [hop.link.name.partition(" ")[0] for hop in message.hops] == ["h0", "h0", "h1", "h1"]
    assert (message.source, message.output, message.source_device, message.target_device) == ("a", 0, GPU[0], FAR)


def test_links_are_passed_cut_through_and_in_turn():
    """Two tensors leave two cards at once for the other host: each has its own lanes, the network card is one."""
    tasks = [Task("a", GPU[0], 1.0, outputs=(16,)), Task("b", GPU[1], 1.0, outputs=(8,)),
             Task("x", CPU[1], 1.0, [("a", 0)]), Task("y", CPU[1], 1.0, [("b", 0)])]  # fmt: skip
    schedule = simulate(tasks, machines())
    a, b = schedule.messages
    assert [(hop.start, hop.end) for hop in a.hops] == [(1, 3), (1, 9), (1, 9)]
    assert [(hop.start, hop.end) for hop in b.hops] == [(1, 2), (9, 13), (9, 13)]
    assert times(schedule)["y"] == (13, 14)
    egress = a.hops[1].link
    assert schedule.links[egress] == [a, b] and schedule.link_busy[egress] == 12


def test_one_message_per_tensor_and_device():
    """Three readers on one device share a message, a reader elsewhere has its own; another output goes by itself."""
    tasks = [Task("a", GPU[0], 1.0, outputs=(8, 16)),
             *(Task(f"r{i}", GPU[1], 1.0, [("a", 0), ("a", 0)]) for i in range(3)),
             Task("s", GPU[2], 1.0, [("a", 0)]), Task("t", GPU[1], 1.0, [("a", 1)])]  # fmt: skip
    sent = [(m.output, m.target_device, m.nbytes) for m in simulate(tasks, machines()).messages]
    assert sent == [(0, GPU[1], 8), (0, GPU[2], 8), (1, GPU[1], 16)]


def test_a_control_edge_is_an_empty_message_or_rides_on_one():
    first = [Task("a", GPU[0], 1.0, outputs=(8,)), Task("b", GPU[1], 1.0, controls=["a"]),
             Task("c", GPU[1], 1.0, [("a", 0)])]  # fmt: skip
    assert [(m.output, m.nbytes) for m in simulate(first, machines()).messages] == [(-1, 0), (0, 8)]
    second = [first[0], first[2], first[1]]
    schedule = simulate(second, machines())
    assert [(m.output, m.nbytes) for m in schedule.messages] == [(0, 8)]
    assert schedule.tasks["b"].ready == schedule.messages[0].arrived


def test_a_message_between_hosts_takes_a_core_at_both_ends():
    tasks = [Task("a", GPU[0], 1.0, outputs=(2,)), Task("b", FAR, 1.0, [("a", 0)]), Task("busy", CPU[0], 3.0)]
    assert simulate(tasks, machines(cores=1, message_s=0.5)).tasks["b"].ready == 3 + 0.5 + 1 + 0.5
    assert simulate(tasks, machines(cores=2, message_s=0.5)).tasks["b"].ready == 1 + 0.5 + 1 + 0.5
    inside = [tasks[0], tasks[1]._replace(device=GPU[1])]
    assert simulate(inside, machines(cores=1, message_s=0.5)).tasks["b"].ready == 1.25


# ---- memory ----


def test_memory_of_an_output_lives_until_its_last_reader_has_ended():
    tasks = [
        Task("v", GPU[0], 0.0, outputs=(100,), kept=100),
        Task("a", GPU[0], 1.0, [("v", 0)], outputs=(7,)),
        Task("b", GPU[0], 1.0, [("a", 0)], outputs=(5,)),
        Task("c", GPU[0], 1.0, [("b", 0)], outputs=(3,)),
    ]
    schedule = simulate(tasks, machines())
    assert schedule.memory[GPU[0]] == [(0, 107), (1, 112), (2, 108), (3, 100)]
    assert schedule.peak == {GPU[0]: 112}


def test_memory_of_a_copy_and_of_a_view():
    tasks = [
        Task("a", GPU[0], 1.0, outputs=(8,)),
        Task("view", GPU[0], 0.0, [("a", 0)], outputs=(8,), view=0),
        Task("b", GPU[1], 1.0, [("view", 0)], outputs=(4,)),
        Task("long", GPU[0], 5.0, controls=["a"]),
    ]
    schedule = simulate(tasks, machines())
    assert schedule.memory[GPU[0]] == [(0, 8), (2, 0)]  # until the message has arrived
    assert schedule.memory[GPU[1]] == [(2, 12), (3, 0)]


@pytest.mark.parametrize("seed", range(20))
def test_memory_held_is_what_the_live_buffers_add_up_to(seed):
    """At any moment: outputs begun, and copies come, that a task still to end or a message under way needs."""
    tasks = random_tasks(seed)
    schedule = simulate(tasks, machines())
    by_name = {task.name: task for task in tasks}
    for moment in random.Random(seed).sample([t for span in schedule.tasks.values() for t in span[3:]], 8):
        held = dict.fromkeys(schedule.memory, 0)
        for task in tasks:
            for output, nbytes in enumerate(task.outputs):
                for device in live_on(task.name, output, moment + 1e-9, schedule, by_name):
                    held[device] += nbytes
        now = {device: held_at(levels, moment + 1e-9) for device, levels in schedule.memory.items()}
        assert now == held
    assert all(schedule.peak[device] <= schedule.made[device] for device in schedule.memory)


def live_on(name, output, moment, schedule, by_name):
    """The devices on which a tensor is in memory."""
    span = schedule.tasks[name]
    messages = [m for m in schedule.messages if (m.source, m.output) == (name, output)]
    readers = [schedule.tasks[t.name] for t in by_name.values() if (name, output) in t.inputs]
    ends = [span.end, *(m.arrived for m in messages), *(r.end for r in readers if r.device == span.device)]
    if span.start <= moment < max(ends):
        yield span.device
    for m in messages:
        if m.arrived <= moment < max(r.end for r in readers if r.device == m.target_device):
            yield m.target_device


def held_at(levels, moment):
    return next((held for start, held in reversed(levels) if start <= moment), 0)


# ---- laws ----


def random_tasks(seed: int, count: int = 40) -> list[Task]:
    rng = random.Random(seed)
    devices = [*GPU, *CPU, FAR]
    tasks = []
    for i in range(count):
        earlier = [f"t{rng.randrange(i)}" for _ in range(min(i, 3))]
        inputs = [(name, rng.randrange(2)) for name in earlier[: rng.randrange(3)]]
        outputs = (rng.randrange(1, 40), rng.randrange(1, 40))
        seconds = rng.choice([0.0, rng.random(), 4 * rng.random()])
        tasks.append(Task(f"t{i}", rng.choice(devices), seconds, inputs, earlier[2:], outputs))
    return tasks


@pytest.mark.parametrize("seed", range(30))
def test_the_critical_path_explains_the_makespan_without_a_gap(seed):
    schedule = simulate(random_tasks(seed), machines(bus_s=0.1, net_s=0.2))
    path = schedule.critical_path
    ends = [part.end if isinstance(part, Span) else part.arrived for part in path]
    starts = [part.start if isinstance(part, Span) else part.sent for part in path]
    assert starts == [0.0, *ends[:-1]] and ends[-1] == schedule.makespan


def test_cores_are_busy_each_for_itself_and_idle_together():
    """Two cores work for 1 s and for 3 s, next to a GPU for 4 s: nothing runs on the host for 1 s, not for 0."""
    schedule = simulate([Task("a", CPU[0], 1.0), Task("b", CPU[0], 3.0), Task("c", GPU[0], 4.0)], machines())
    assert (schedule.busy[CPU[0]], schedule.idle[CPU[0]]) == (4, 1) and schedule.idle[GPU[0]] == 0


@pytest.mark.parametrize("seed", range(30))
def test_nothing_starts_too_early_and_no_processor_does_too_much(seed):
    tasks = random_tasks(seed)
    schedule = simulate(tasks, machines())
    arrived = {(m.source, m.output, m.target_device): m.arrived for m in schedule.messages}
    for task in tasks:
        span = schedule.tasks[task.name]
        assert span.end == pytest.approx(span.start + task.seconds) and span.start >= span.ready
        for source, output in task.inputs:
            there = schedule.tasks[source]
            came = there.end if there.device == task.device else arrived[source, output, task.device]
            assert came <= span.ready
    for device, spans in schedule.spans.items():
        if "GPU" in device:
            assert all(a.end <= b.start for a, b in itertools.pairwise(spans))
            assert [span.ready for span in spans] == sorted(span.ready for span in spans)
            assert schedule.idle[device] + schedule.busy[device] == pytest.approx(schedule.makespan)
    for link, messages in schedule.links.items():
        hops = [(hop, m.nbytes / link.bandwidth) for m in messages for hop in m.hops if hop.link is link]
        for first, (hop, _) in enumerate(hops):
            work = itertools.accumulate(seconds for _, seconds in hops[first:])
            assert all(
                later.end >= hop.start + passed - 1e-9 for (later, _), passed in zip(hops[first:], work, strict=True)
            )


@pytest.mark.parametrize("seed", range(10))
def test_all_times_scaled_scale_the_makespan(seed):
    tasks = random_tasks(seed)
    slow = [task._replace(seconds=3 * task.seconds) for task in tasks]
    once = simulate(tasks, machines(bus_s=0.1, net_s=0.2)).makespan
    assert simulate(slow, machines(bus_s=0.3, net_s=0.6, rate=1 / 3)).makespan == pytest.approx(3 * once, rel=1e-9)


def test_a_plan_runs_again_with_other_times_places_and_machines():
    tasks = random_tasks(1)
    plan = Plan(tasks)
    fabric = Fabric(machines(), [*GPU, *CPU, FAR])
    where = [fabric.devices.index(task.device) for task in tasks]
    first = plan.run(fabric, where=where)
    assert times(first) == times(simulate(tasks, machines()))
    doubled = plan.run(fabric, [2 * task.seconds for task in tasks], where)
    assert times(doubled) == times(simulate([t._replace(seconds=2 * t.seconds) for t in tasks], machines()))
    moved = plan.run(fabric, where=[0] * len(tasks))
    assert moved.messages == [] and moved.makespan == pytest.approx(sum(task.seconds for task in tasks))
    assert times(plan.run(Fabric(machines(rate=5.0), plan.devices))) == times(simulate(tasks, machines(rate=5.0)))
    assert times(plan.run(fabric, where=where)) == times(first)  # and left no trace


def test_machines_of_the_catalogue_serve():
    two = machines_for({task: task for task in TASKS}, gpus=2, gpu="K40", network="10Gb/s")
    tasks = [Task("a", GPU[0], 1e-3, outputs=(125_000_000,)), Task("b", FAR, 1e-3, [("a", 0)])]
    schedule = simulate(tasks, two)
    assert 0.1 < schedule.makespan < 0.2  # 1.25 GB/s
    assert isinstance(schedule.critical_path[1], Message)


# ---- what is wrong ----


@pytest.mark.parametrize(
    ("tasks", "says"),
    [
        ([Task("a", GPU[0], 1.0), Task("a", GPU[0], 1.0)], "Two tasks are named 'a'"),
        ([Task("a", GPU[0], -1.0)], "Task 'a' on .* takes -1.0 s"),
        ([Task("a", GPU[0], float("nan"))], "takes nan s"),
        ([Task("a", GPU[0], 1.0, [("b", 0)])], "reads b:0, which no task makes"),
        ([Task("b", GPU[0], 1.0, outputs=(1,)), Task("a", GPU[0], 1.0, [("b", 1)])], "reads b:1, which no task makes"),
        ([Task("a", GPU[0], 1.0, controls=["b"])], "waits for unknown task 'b'"),
        ([Task("a", GPU[0], 1.0, (), ["b"]), Task("b", GPU[1], 1.0, (), ["a"])], "2 tasks are blocked in a circle"),
        ([Task("a", "/job:ps/replica:0/task:0/device:CPU:0", 1.0)], "/job:ps"),
        ([Task("a", f"{TASKS[0]}/device:GPU:7", 1.0)], "GPU:7"),
    ],
)  # fmt: skip
def test_errors_name_the_task_and_the_device(tasks, says):
    with pytest.raises(ValueError, match=says):
        simulate(tasks, machines())
