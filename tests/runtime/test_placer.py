"""The placer as a pure function; `tests/placement/oracle/test_placement.py` compares it with TensorFlow's."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.runtime.placer import place

TASKS = ("/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1")
DEVICES = [f"{task}/device:{kind}:{i}" for task in TASKS for kind in ("CPU", "GPU") for i in (0, 1)]


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        tf.placeholder(tf.float32, [], name="x")
        yield


def placed(master=TASKS[1], devices=DEVICES, **kwargs):
    """Node → the distinguishing part of its device."""
    found = place(tf.get_default_graph().nodes(), devices, master, **kwargs)
    return {name: device.replace("/replica:0", "").replace("/device", "") for name, device in found.items()}


def op(name, *inputs, device=""):
    x = tf.get_default_graph().get_tensor_by_name("x:0")
    with tf.device(device):
        return tf.add_n([x, x, *inputs], name=name)


def test_a_request_is_filled_up_from_the_masters_task_and_a_gpu_comes_first():
    requests = [
        "",
        "/cpu:0",
        "/device:CPU:1",
        "/job:ps",
        "/job:worker",
        "/task:0",
        "/job:worker/task:1",
        "/job:ps/gpu:1",
    ]
    for number, request in enumerate(requests):
        op(f"n{number}", device=request)
    found = placed(TASKS[2])
    assert [found[f"n{number}"] for number in range(len(requests))] == [
        "/job:worker/task:1:GPU:0",
        "/job:worker/task:1:CPU:0",
        "/job:worker/task:1:CPU:1",
        "/job:ps/task:0:GPU:0",
        "/job:worker/task:1:GPU:0",
        "/job:ps/task:0:GPU:0",
        "/job:worker/task:1:GPU:0",
        "/job:ps/task:0:GPU:1",
    ]


def test_the_job_without_task_is_task_0_unless_the_master_is_a_member():
    op("a", device="/job:worker/cpu:0")
    assert placed(TASKS[0])["a"] == "/job:worker/task:0:CPU:0"
    assert placed(TASKS[2])["a"] == "/job:worker/task:1:CPU:0"


def test_the_order_of_devices_and_nodes_makes_no_difference():
    with tf.device("/job:ps"):
        v = tf.Variable(1.0)
    tf.add(v, tf.constant(2.0))
    nodes = tf.get_default_graph().nodes()
    assert place(nodes, DEVICES, TASKS[1]) == place(nodes[::-1], DEVICES[::-1], TASKS[1])


def test_what_is_placed_stays():
    a = op("a")
    first = place(tf.get_default_graph().nodes(), DEVICES, TASKS[1])
    with tf.device("/job:ps"):
        tf.Variable(1.0, name="v").assign_add(a)
    op("b", a)
    second = place(tf.get_default_graph().nodes(), DEVICES, TASKS[2], placed=first)
    assert {name: second[name] for name in first} == first
    assert second["v"].startswith(TASKS[0]) and second["b"].startswith(TASKS[2])


def test_newcomers_join_the_group_where_it_is():
    v = tf.Variable(1.0, name="v", use_resource=True)
    first = place(tf.get_default_graph().nodes(), DEVICES, TASKS[0])
    with tf.device("/job:worker"):
        v.assign_add(2.0)
    second = place(tf.get_default_graph().nodes(), DEVICES, TASKS[2], placed=first)
    assert {d for n, d in second.items() if n.startswith(("v", "AssignAdd")) and "value" not in n} == {first["v"]}


def test_a_group_without_a_leader_is_a_group():
    nodes = []
    for name in "ab":
        op(name, device="/job:ps" if name == "b" else "")
        nodes = tf.get_default_graph().nodes()
    for node in nodes:
        if node.name in "ab":
            node.attrs["_class"] = [b"loc:@nobody"]
    found = place(nodes, DEVICES, TASKS[1])
    assert found["a"] == found["b"] == f"{TASKS[0]}/device:GPU:0"


def test_groups_of_groups():
    a = op("a")
    with tf.colocate_with(a):
        b = op("b")
    with tf.colocate_with(b), tf.device(None):
        c = op("c")
    op("d", c, device="/job:ps/cpu:1")
    nodes = tf.get_default_graph().nodes()
    next(n for n in nodes if n.name == "d").attrs["_class"] = [b"loc:@c", b"loc:@a"]
    found = place(nodes, DEVICES, TASKS[1])
    assert {found[name] for name in "abcd"} == {f"{TASKS[0]}/device:CPU:1"}


def test_soft_placement_gives_up_the_device_never_the_task():
    cpus = [device for device in DEVICES if "CPU" in device]
    op("a", device="/job:ps/gpu:0")
    op("b", device="/job:ps/cpu:9")
    found = placed(devices=cpus, allow_soft_placement=True)
    assert found["a"] == found["b"] == "/job:ps/task:0:CPU:0"
    op("c", device="/job:ps/task:3")
    with pytest.raises(errors.InvalidArgumentError, match=r"operation c: .* /job:ps/task:3 but available devices are"):
        placed(devices=cpus, allow_soft_placement=True)


def test_errors_name_the_node_the_request_what_there_is_and_what_to_do():
    op("good")
    op("lost", device="/job:worker/task:9")
    with pytest.raises(errors.InvalidArgumentError) as caught:
        placed()
    message = caught.value.message
    assert (
        "Cannot assign a device for operation lost: {{node lost}} was explicitly assigned to /job:worker/task:9"
        in message
    )
    assert all(device in message for device in DEVICES) and "choose a job and task of the cluster" in message
    assert "allow_soft_placement" not in message  # it never helps where the task is missing
    assert "Did you mean" not in message, "the job is right"


@pytest.mark.parametrize(("job", "meant"), [("wroker", "/job:worker"), ("pss", "/job:ps"), ("x", "")])
def test_a_job_that_is_not_there_gets_its_nearest(job, meant):
    op("lost", device=f"/job:{job}/task:0")
    with pytest.raises(errors.InvalidArgumentError) as caught:
        placed()
    assert (f"devices above. Did you mean {meant}? This" in caught.value.message) == bool(meant)
    assert ("Did you mean" in caught.value.message) == bool(meant)


def test_soft_placement_is_advised_where_it_helps():
    op("lost", device="/job:worker/task:0/gpu:9")
    with pytest.raises(errors.InvalidArgumentError, match="allow_soft_placement"):
        placed()


def test_a_contradiction_lists_who_asks_for_what():
    a = op("a", device="/job:ps")
    with tf.colocate_with(a):
        op("b")
    nodes = tf.get_default_graph().nodes()
    next(n for n in nodes if n.name == "b").device = "/job:worker"
    with pytest.raises(
        errors.InvalidArgumentError, match=r"Cannot colocate nodes .*b.* and .*a.*incompatible jobs"
    ) as caught:
        place(nodes, DEVICES, TASKS[1])
    assert "a (AddN) /job:ps" in caught.value.message and "b (AddN) /job:worker" in caught.value.message


def test_loops_are_placed_too():
    from dtflab.graph.apply_op import apply_op

    enter = apply_op("Enter", data=tf.constant(1.0), frame_name="loop")
    merge = apply_op("Merge", "m", inputs=[enter, enter])[0]
    with tf.device("/job:ps"):
        merge.op._update_input(1, apply_op("NextIteration", "n", data=merge))
    found = placed()
    assert found["m"] == "/job:worker/task:0:GPU:0" and found["n"] == "/job:ps/task:0:GPU:0"


# -- GPUs, and reasons ------------------------------------------------------------------------------------------

LOCAL = "/job:localhost/replica:0/task:0"
ONE_GPU = [f"{LOCAL}/device:CPU:0", f"{LOCAL}/device:GPU:0"]
TWO_GPUS = [*ONE_GPU, f"{LOCAL}/device:GPU:1"]


def here(devices=ONE_GPU, **kwargs):
    """Place the graph on one machine: the end of each node's device, and the reasons."""
    found = place(tf.get_default_graph().nodes(), devices, LOCAL, **kwargs)
    return {name: device.rpartition("device:")[2] for name, device in found.items()}, found.reasons


def test_reasons_of_pins_and_defaults():
    op("open")
    op("pinned", device="/gpu:0")
    with tf.device("/cpu:0"):
        v = tf.Variable(3.0, name="v")
    i = tf.Variable(3, name="i")
    tf.multiply(v, tf.constant(4.0, name="four"), name="product")
    tf.size(op("on_cpu", device="/cpu:0"), name="size", out_type=tf.int64)
    tf.add(i, 1, name="sum")
    where, why = here()
    assert {name: (where[name], why[name]) for name in (
        "open", "pinned", "v", "v/read", "v/Assign", "four", "product", "i", "i/Assign", "i/read", "sum/y",
    )} == {
        "open": ("GPU:0", "default device: the first GPU of the master's task"),
        "pinned": ("GPU:0", "pinned to /gpu:0 by the program"),
        "v": ("CPU:0", "pinned to /cpu:0 by the program"),
        "v/Assign": ("CPU:0", "pinned to /cpu:0 by the program"),
        "v/read": ("CPU:0", "pinned to /cpu:0 by the program"),
        "four": ("GPU:0", "next to its consumer 'product'"),
        "product": ("GPU:0", "default device: the first GPU of the master's task"),
        "i": ("CPU:0", "no GPU kernel for VariableV2 with int32, so the CPU"),
        "i/Assign": ("CPU:0", "next to its variable 'i' (reference edge)"),
        "i/read": ("CPU:0", "colocated with its variable 'i'"),
        "sum/y": ("GPU:0", "next to its consumer 'sum'"),
    }  # fmt: skip


def test_reasons_of_neighbours():
    from dtflab.graph.apply_op import apply_op

    x = tf.get_default_graph().get_tensor_by_name("x:0")
    with tf.device("/gpu:1"):
        a = tf.negative(x, name="a")
        b = tf.negative(tf.identity(a, name="between"), name="b")
    apply_op("Rank", "rank", input=a)
    tf.get_default_graph().get_operation_by_name("between")._set_device("")
    with tf.device("/job:localhost"):
        c = tf.constant(1.0, name="c")
    with tf.device("/cpu:0"):
        tf.add_n([c, c], name="first")
        tf.add(b, c, name="second")
    where, why = here(TWO_GPUS)
    assert (where["rank"], why["rank"]) == ("GPU:1", "only reads the rank of 'a', so next to it")
    assert (where["between"], why["between"]) == ("GPU:1", "only passes on 'a', so next to it")
    assert (where["c"], why["c"]) == (
        "CPU:0", "pinned to /job:localhost; there next to its consumers, 'first' and 1 more"
    )  # fmt: skip


def test_reasons_of_resources_and_groups():
    with tf.device("/gpu:1"):
        v = tf.Variable(1.0, name="v", use_resource=True)
    with tf.device("/cpu:0"):
        v.assign_add(2.0)
    queue = tf.FIFOQueue(3, [tf.float32], name="queue")
    queue.enqueue(1.0, name="push")
    free = tf.Variable(1.0, name="free", use_resource=True)
    with tf.device("/gpu:1"):
        free.assign_add(1.0)
    a = op("a")
    with tf.colocate_with(a):
        tf.as_string(a, name="text")
    where, why = here(TWO_GPUS)
    add = next(name for name in where if name.startswith("AssignAdd"))
    assert (where[add], why[add]) == (
        "GPU:1",
        "next to its variable 'v' (resource edge), against its own pin to /cpu:0",
    )
    assert (where["push"], why["push"]) == ("CPU:0", "next to 'queue' (resource edge)")
    pinned = next(name for name in where if name.startswith("AssignAddVariableOp_1"))
    assert (where["free"], why["free"]) == ("GPU:1", f"shares its device with {pinned!r}, which is pinned to /gpu:1")
    assert where["a"] == where["text"] == "CPU:0"
    assert why["a"] == "shares its device with 'text', which has no GPU kernel (AsString with float32), so the CPU"
    assert why["text"] == "colocated with 'a'"
    assert why["queue"] == "pinned to /cpu:* by the program"  # tf.FIFOQueue does so
    assert why["v/Initializer/initial_value"] == "colocated with its variable 'v'"


def test_reasons_of_soft_placement():
    with tf.device("/gpu:0"):
        tf.Variable(3, name="i")
    op("elsewhere", device="/gpu:7")
    where, why = here(allow_soft_placement=True)
    assert (where["i"], why["i"]) == ("CPU:0", "no GPU kernel for VariableV2 with int32, so the CPU (soft placement)")
    assert why["i/Assign"] == "next to its variable 'i' (reference edge), against its own pin to /gpu:0"
    assert where["elsewhere"] == "GPU:0"
    assert why["elsewhere"] == "there is no /gpu:7, so the first device with a kernel (soft placement)"


def test_reasons_in_a_cluster():
    op("open")
    op("ps", device="/job:ps")
    nodes = tf.get_default_graph().nodes()
    with_gpus = place(nodes, DEVICES, TASKS[1])
    assert with_gpus.reasons["ps"] == "pinned to /job:ps; there the first device with a kernel"
    elsewhere = [device for device in DEVICES if "GPU" not in device or TASKS[1] not in device]
    assert place(nodes, elsewhere, TASKS[1]).reasons["open"] == (
        "default device: the first GPU; the master's task has none"
    )
    cpus = [device for device in DEVICES if "CPU" in device]
    without = place(nodes, cpus, TASKS[1]).reasons
    assert without["open"] == "default device: the first CPU of the master's task"
    assert without["ps"] == "pinned to /job:ps; there the first device"


def test_reasons_of_what_was_placed_earlier_and_of_what_was_changed():
    op("a")
    first = place(tf.get_default_graph().nodes(), ONE_GPU, LOCAL)
    op("b")
    second = place(tf.get_default_graph().nodes(), ONE_GPU, LOCAL, placed=first)
    assert second.reasons["a"] == "placed in an earlier run" and "default" in second.reasons["b"]
    second["b"] = ONE_GPU[0]
    assert second.reasons.keys() == {"x", "a"}


def test_every_node_has_a_reason_and_the_table_is_read_only_for_gpus(monkeypatch):
    from dtflab.ops import kernel_registry

    v = tf.Variable(1.0, name="v")
    tf.train.AdamOptimizer(0.1).minimize(v * v)
    monkeypatch.setattr(kernel_registry, "_table", lambda: pytest.fail("read for CPUs"))
    where, why = here(ONE_GPU[:1])
    assert why.keys() == where.keys() and set(where.values()) == {"CPU:0"}
    assert why["v"] == "the only device"


def failure(devices=ONE_GPU):
    with pytest.raises(errors.InvalidArgumentError) as caught:
        here(devices)
    return caught.value.message


def test_the_error_of_a_variable_without_gpu_kernel():
    with tf.device("/gpu:0"):
        tf.Variable(3)
    assert failure() == (
        "Cannot assign a device for operation Variable: Could not satisfy explicit device specification "
        "'/device:GPU:0' because no supported kernel for GPU devices is available.\n"
        "Colocation Debug Info:\n"
        "Colocation group had the following types and supported devices: \n"
        "VariableV2: CPU\n"
        "Assign: CPU\n"
        "Identity: GPU CPU\n"
        "\n"
        "Colocation members, user-requested devices, and framework assigned devices, if any:\n"
        "  Variable (VariableV2) /device:GPU:0\n"
        "  Variable/Assign (Assign) /device:GPU:0\n"
        "  Variable/read (Identity) /device:GPU:0\n"
        "\n"
        "Op: VariableV2\n"
        "Registered kernels:\n"
        "  device='CPU'\n"
        "  device='GPU'; dtype in [DT_BFLOAT16, DT_BOOL, DT_COMPLEX128, DT_COMPLEX64, DT_HALF, DT_FLOAT, DT_DOUBLE, "
        "DT_INT64, DT_UINT32]\n"
        "  device='DEFAULT'; dtype in [DT_BFLOAT16, DT_BOOL, DT_COMPLEX128, DT_COMPLEX64, DT_HALF, DT_FLOAT, "
        "DT_DOUBLE, DT_INT64, DT_UINT32]\n"
        "\n"
        "What to do: VariableV2 with int32 has no GPU kernel. Make the variable float32, pin it to /cpu:0, or let the "
        "session choose another device: tf.ConfigProto(allow_soft_placement=True). This op stays in the graph, even if "
        "you create another one: call tf.reset_default_graph(), build the graph again and open a new session.\n"
        "\t [[{{node Variable}}]]"
    )


def test_errors_say_what_to_do():
    op("a", device="/gpu:1")
    assert "What to do: request a device that exists, or let the session choose" in failure()
    with tf.Graph().as_default(), tf.device("/gpu:0"):
        tf.read_file("name", name="read")
        assert "What to do: ReadFile has no GPU kernel. Pin it to /cpu:0, or let the session choose" in failure()


def test_errors_say_where_the_group_is_already():
    v = tf.Variable(1.0, name="v", use_resource=True)
    first = place(tf.get_default_graph().nodes(), ONE_GPU, LOCAL)
    with tf.colocate_with(v.op):
        tf.as_string(1.0, name="text")
    with pytest.raises(errors.InvalidArgumentError) as caught:
        place(tf.get_default_graph().nodes(), ONE_GPU, LOCAL, placed=first)
    message = caught.value.message
    assert f"group of nodes that required incompatible device '{ONE_GPU[1]}'" in message
    assert f"  v (VarHandleOp) framework assigned device={ONE_GPU[1]}\n" in message
    assert "What to do: AsString with float32 has no GPU kernel." in message


def test_names_of_devices_are_compared_letter_by_letter():
    op("a", device="/job:w")
    found = place(
        tf.get_default_graph().nodes(), [f"/job:w/replica:0/task:{i}/device:CPU:0" for i in (2, 10)], "/job:m"
    )
    assert found["a"] == "/job:w/replica:0/task:10/device:CPU:0"


def test_a_device_that_nobody_can_read():
    op("a").op._set_device("gpu0")
    assert failure() == (
        "Malformed device specification 'gpu0' in node: {{node a}}\n"
        "What to do: write it as /job:ps/task:0/device:GPU:0; every part is optional.\n\t [[{{node a}}]]"
    )


def test_two_homes_say_what_to_do():
    from dtflab.graph.apply_op import apply_op

    with tf.device("/gpu:0"):
        a = tf.Variable(1.0, name="a", use_resource=False)
    with tf.device("/cpu:0"):
        b = tf.Variable(1.0, name="b", use_resource=False)
    apply_op("RefMerge", "merge", inputs=[a._ref(), b._ref()])
    message = failure()
    assert message.startswith("Cannot place the graph because a reference or resource edge connects colocation groups")
    assert "/device:CPU:0 vs /device:GPU:0" in message and "pass a value to merge: tf.identity(…)" in message


def test_long_chains_of_groups_are_no_problem():
    x = op("n0", device="/gpu:1")
    for i in range(1, 3000):
        with tf.device(None):
            x = tf.negative(x, name=f"n{i}")
    for node in (nodes := tf.get_default_graph().nodes()):
        if node.op == "Neg":
            node.attrs["_class"] = [f"loc:@n{int(node.name[1:]) - 1}".encode()]
    found = place(nodes[::-1], TWO_GPUS, LOCAL)
    assert {found[node.name] for node in nodes if node.op == "Neg"} == {TWO_GPUS[2]}


@pytest.mark.parametrize("on_cluster", [False, True])
def test_a_session_on_no_cluster_is_told_so(on_cluster):
    with tf.Graph().as_default(), tf.Cluster(worker=1) as cluster, tf.device("/job:worker/task:7"):
        one, session = tf.constant(1), tf.Session(cluster.target if on_cluster else "")
        with session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(one)
    assert ("this session has no cluster" in caught.value.message) is not on_cluster
