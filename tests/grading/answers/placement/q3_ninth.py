import dtflab as tf


# Breaks: "because they have to be next to another op. `with tf.colocate_with(op):` asks for that." A control
# dependency only says when an op runs; these ops are placed on the GPU.
def pins_dragged_by_control(gpu, cpu, dragged):
    result = {"gpu": [], "cpu": [], "dragged": []}
    for i in range(gpu):
        result["gpu"].append(tf.square(float(i)).op)
    for i in range(cpu):
        result["cpu"].append(tf.as_string(float(i)).op)
    anchor = tf.as_string(0.5).op
    for i in range(dragged):
        with tf.control_dependencies([anchor]):
            result["dragged"].append(tf.square(float(i)).op)
    return result


# Breaks: `"cpu"`: "because GPUs have no kernel for them". The integer variable has none, but value() is an
# Identity, which has one: it is on the CPU because it has to be next to the variable.
def pins_reads_of_integers(gpu, cpu, dragged):
    on_gpu = [tf.negative(tf.constant(1.0)).op for _ in range(gpu)]
    on_cpu = [tf.Variable(0).value().op for _ in range(cpu)]
    text = tf.as_string(1.0)
    with tf.colocate_with(text.op):
        beside = [tf.exp(1.0).op for _ in range(dragged)]
    return {"gpu": on_gpu, "cpu": on_cpu, "dragged": beside}


# Breaks: "ops that do have a GPU kernel". The op that all others are next to is counted as the first of them.
def pins_anchor_counted(gpu, cpu, dragged):
    lists = {
        "gpu": [tf.sqrt(4.0).op for _ in range(gpu)],
        "cpu": [tf.as_string(4.0).op for _ in range(cpu)],
        "dragged": [],
    }
    if dragged:
        first = tf.as_string(2.0).op
        lists["dragged"].append(first)
        while len(lists["dragged"]) < dragged:
            with tf.colocate_with(first):
                lists["dragged"].append(tf.sqrt(2.0).op)
    return lists


# Right: integer variables are the ops of the CPU; a chain of colocated ops, each next to the one before, is dragged.
def pins_chain(gpu, cpu, dragged):
    variables = [tf.Variable(i, name="whole") for i in range(cpu + 1)]
    reals = [tf.Variable(0.5, name="real").op for _ in range(gpu)]
    chain = [variables.pop().op]
    for _ in range(dragged):
        with tf.colocate_with(chain[-1]):
            chain.append(tf.constant(3.0, name="beside").op)
    return {"gpu": reals, "cpu": [variable.op for variable in variables], "dragged": chain[1:]}


RIGHT = [pins_chain]
WRONG = {
    # A control dependency doesn't drag an op to a device: these ops are placed on the GPU.
    pins_dragged_by_control: "follows_its_inputs",
    # The ops called 'cpu' are Identity ops, which have a GPU kernel: they are there because of their variable.
    pins_reads_of_integers: "drags_them_to_the_cpu",
    # The first 'dragged' op is the string op itself, which has no GPU kernel.
    pins_anchor_counted: "drags_what_must_be_there",
}
