"""Data for pictures, made without a session: a training step of an MLP between a ps and workers, and its trace."""

from __future__ import annotations

from dtflab.graph.node import Node
from dtflab.protos.step_stats_pb2 import StepStats
from dtflab.viz.data.graph_ops import edges_of, ops_of

PS = "/job:ps/replica:0/task:0/device:CPU:0"
BATCH = 100


def worker(task: int = 0) -> str:
    return f"/job:worker/replica:0/task:{task}/device:CPU:0"


def mlp(sizes=(64, 100, 10), task: int = 0, prefix: str = "") -> list[Node]:
    """Forward, backward and update of a fully connected net, as `replica_device_setter` places it."""
    nodes: list[Node] = []
    here, layers = worker(task), [f"layer{i}" for i in range(1, len(sizes))]

    def add(name: str, op: str, *inputs: str, device: str = here, controls=()) -> str:
        nodes.append(Node(prefix + name, op, [(i, 0) for i in inputs], [*controls], device))
        return prefix + name

    x, y = add("x", "Placeholder"), add("y", "Placeholder")
    weights, below = {}, {layers[0]: x}
    for layer, above in zip(layers, [*layers[1:], None], strict=True):
        w = add(f"{layer}/weights", "VariableV2", device=PS)
        b = add(f"{layer}/bias", "VariableV2", device=PS)
        weights[layer] = w, b, add(f"{layer}/weights/read", "Identity", w, device=PS)
        bias = add(f"{layer}/bias/read", "Identity", b, device=PS)
        product = add(f"{layer}/MatMul", "MatMul", below[layer], weights[layer][2])
        result = add(f"{layer}/add", "AddV2", product, bias)
        if above:
            below[above] = result = add(f"{layer}/Relu", "Relu", result)
    loss = add("loss/xent", "SoftmaxCrossEntropyWithLogits", result, y)
    add("loss/Mean", "Mean", loss, add("loss/Const", "Const"))
    gradient = add("gradients/loss/Mean_grad/truediv", "RealDiv", loss)
    gradient = add("gradients/loss/xent_grad/mul", "Mul", gradient, loss)
    rate, updates = add("GradientDescent/learning_rate", "Const"), []
    for layer in reversed(layers):
        scope = f"gradients/{layer}"
        if layer is not layers[-1]:
            gradient = add(f"{scope}/Relu_grad/ReluGrad", "ReluGrad", gradient, prefix + f"{layer}/Relu")
        axis = add(f"{scope}/add_grad/Sum/reduction_indices", "Const")
        db = add(f"{scope}/add_grad/Sum", "Sum", gradient, axis)
        dw = add(f"{scope}/MatMul_grad/MatMul_1", "MatMul", below[layer], gradient)
        done = add(f"{scope}/MatMul_grad/tuple/group_deps", "NoOp", controls=[dw, db])
        w, b, read = weights[layer]
        if layer is not layers[0]:
            gradient = add(f"{scope}/MatMul_grad/MatMul", "MatMul", gradient, read)
        for variable, change in ((w, dw), (b, db)):
            name = f"GradientDescent/update_{variable.removeprefix(prefix)}/ApplyGradientDescent"
            updates.append(add(name, "ApplyGradientDescent", variable, rate, change, device=PS, controls=[done]))
    update = add("GradientDescent/update", "NoOp", device=PS, controls=updates)
    value = add("GradientDescent/value", "Const", device=PS, controls=[update])
    add("GradientDescent", "AssignAdd", add("global_step", "VariableV2", device=PS), value, device=PS)
    return nodes


def traced(nodes: list[Node], started_us: int = 1_700_000_000_000_000) -> StepStats:
    """A trace as a runtime writes it: each op starts when its inputs are there, a transfer takes 40 µs."""
    cost = {"MatMul": 60_000, "Relu": 12_000, "ReluGrad": 14_000, "SoftmaxCrossEntropyWithLogits": 45_000}
    end: dict[str, int] = {}
    stats, devices = StepStats(), {}
    incoming: dict[str, list] = {}
    ops = ops_of(nodes)
    device = {op.name: op.device for op in ops}
    for edge in edges_of(ops):
        incoming.setdefault(edge.target, []).append(edge)
    busy: dict[str, int] = {}
    sent: dict[tuple[str, str], int] = {}

    def record(where: str, name: str, label: str, start: int, stop: int, size: int) -> None:
        if where not in devices:
            devices[where] = stats.dev_stats.add(device=where, thread_names={0: "client"})
        node = devices[where].node_stats.add(node_name=name, timeline_label=label)
        node.all_start_nanos, node.all_start_micros = started_us * 1000 + start, started_us + start // 1000
        node.all_end_rel_nanos, node.all_end_rel_micros = stop - start, (stop - start) // 1000
        node.output.add().tensor_description.allocation_description.requested_bytes = size

    for op in ops:
        ready = 0
        for edge in incoming.get(op.name, ()):
            arrived = end[edge.source]
            if edge.kind == "transfer" and (edge.tensor, op.device) not in sent:
                sent[edge.tensor, op.device] = arrived + 40_000
                label = f"[4000B] edge_{len(sent)}_{edge.source} from {device[edge.source]} to {op.device}"
                record(op.device, "RecvTensor", label, arrived, arrived + 40_000, 4000)
            ready = max(ready, sent.get((edge.tensor, op.device), arrived))
        start = max(ready, busy.get(op.device, 0))
        inputs = ", ".join(edge.source for edge in incoming.get(op.name, ()) if edge.kind != "control")
        end[op.name] = busy[op.device] = start + cost.get(op.op, 2_000)
        record(op.device, op.name, f"{op.name} = {op.op}({inputs})", start, end[op.name], 4000)
    return stats
