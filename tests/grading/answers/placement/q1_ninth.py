import heapq

import dtflab as tf

_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")
_bytes_on = {}


def _size(op):
    shape = tf.TensorShape(op.get_attr("shape"))
    return shape.num_elements() * tf.as_dtype(op.get_attr("dtype")).size


# Breaks: "every other op goes to `worker`": whatever has an attribute 'shape' is taken for a variable,
# also a placeholder.
def balance_all_with_shape(ps_tasks, worker):
    held = [0] * ps_tasks

    def device_of(op):
        if "shape" not in op.node_def.attr:
            return worker
        shape = tf.TensorShape(op.get_attr("shape"))
        task = held.index(min(held))
        held[task] += (shape.num_elements() or 0) * tf.as_dtype(op.get_attr("dtype")).size
        return f"/job:ps/task:{task}"

    return device_of


# Breaks: "the `ps` task that holds the fewest bytes so far": the bytes are remembered outside the function, so a
# second device function begins with what the first one has dealt.
def balance_one_memory_for_all(ps_tasks, worker):
    for task in range(ps_tasks):
        _bytes_on.setdefault(task, 0)

    def device_of(op):
        if op.type in _VARIABLES:
            task = min(range(ps_tasks), key=_bytes_on.get)
            _bytes_on[task] += _size(op)
            return f"/job:ps/task:{task}"
        return worker

    return device_of


# Breaks: "holds the **fewest bytes** so far": whole kilobytes are counted, and a small variable counts as nothing.
def balance_in_kilobytes(ps_tasks, worker):
    kilobytes = {f"/job:ps/task:{task}": 0 for task in range(ps_tasks)}

    def device_of(op):
        if op.type not in _VARIABLES:
            return worker
        device = min(kilobytes, key=kilobytes.get)
        kilobytes[device] += _size(op) // 1024
        return device

    return device_of


# Right: an object that can be called, with a heap of (bytes, task).
class _Dealer:
    def __init__(self, ps_tasks, worker):
        self.heap = [(0, task) for task in range(ps_tasks)]
        self.worker = worker

    def __call__(self, op):
        if op.type not in _VARIABLES:
            return op.device or self.worker
        held, task = self.heap[0]
        heapq.heapreplace(self.heap, (held + _size(op), task))
        return tf.DeviceSpec(job="ps", task=task).to_string()


def balance_with_heap(ps_tasks, worker):
    return _Dealer(ps_tasks, worker)


RIGHT = [balance_with_heap]
WRONG = {
    # A placeholder has an attribute 'shape', too, and is put on a parameter server.
    balance_all_with_shape: "pins_everything",
    # All device functions share one memory: a second model is dealt as if the first one's variables were there.
    balance_one_memory_for_all: "shared_state",
    # Bytes are rounded down to kilobytes, so small variables count as nothing and all go to one task.
    balance_in_kilobytes: "counts_in_kilobytes",
}
