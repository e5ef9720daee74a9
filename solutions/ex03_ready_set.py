# %% [markdown]
# # Exercise 03: which ops are ready together
#
# **The executor gets a graph. Which ops can it start at once, and which ones when those are done?**
#
# Each op has a *counter*: the number of edges that come in. An op whose counter is 0 is *ready*. When an op is done,
# each edge that leaves it lowers the counter at its other end by 1. This is all that decides when an op may run; you
# will now write it yourself.
#
# To see it, we let the ops that are ready run as one *set*, and look again when all of them are done. That is an order
# of explanation. A real executor has no sets: it starts each op as soon as its own counter is 0, so a chain of quick
# ops overtakes a slow op that was ready before.

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## What an op knows of its edges
#
# `op.inputs` are the tensors that it reads; `tensor.op` is the op that makes one. `op.control_inputs` are ops that it
# waits for, without reading anything. First look: how many edges come into `e`? Predict, then run.

# %%
with tf.Graph().as_default() as graph:
    a = tf.timestamp(name="a")
    b = tf.timestamp(name="b")
    c = tf.add_n([a, b], name="c")
    with tf.control_dependencies([c]):
        e = tf.add_n([b, b], name="e")

for op in graph.get_operations():
    sources = [tensor.op.name for tensor in op.inputs]
    print(op.name, "reads", sources, "and waits for", [other.name for other in op.control_inputs])

# %% [markdown]
# ## Your task
#
# Write `ready_order(ops)`. `ops` is a list of all ops of a graph, in any order. It returns a list of lists of names (or
# of the ops themselves): first the ops that are ready when the step begins, then those that become ready when all of
# these are done, and so on. The order inside a list does not matter. There are no loops in the graph; one without ops
# has no set: `[]`. Find the sets from the edges: your function opens no session (`session.step_through` would find them
# for you, as you will see below).
#
# Each op of `ops` is in exactly one set; one that needs nothing, such as `a` and `b` above, is in the first. The graphs
# of the checks have no constants: dtflab knows these before a step begins, so `step_through` leaves them out.


# %%
def ready_order(ops):
    """The names of ops that are ready together: a list per set, if each set waits for the one before."""
    ### BEGIN SOLUTION
    counter = dict.fromkeys(ops, 0)
    after = {op: [] for op in ops}  # where the edges of an op lead to
    for op in ops:
        for source in [tensor.op for tensor in op.inputs] + list(op.control_inputs):
            after[source].append(op)
            counter[op] += 1
    order = []
    ready = [op for op in ops if counter[op] == 0]
    while ready:
        order.append([op.name for op in ready])
        consumers = [consumer for op in ready for consumer in after[op]]
        for consumer in consumers:
            counter[consumer] -= 1
        ready = [op for op in dict.fromkeys(consumers) if counter[op] == 0]
    return order
    ### END SOLUTION


# %% [markdown]
# ## How good is it?
#
# Steps through graphs that you have not seen show which ops are ready, and your sets are compared with these. Where
# they differ, a picture shows the graph at that moment, each op with its counter. `%dtf_grade parallel/q3 --hint` in a
# cell of your own gives a hint, a bigger one each time.

# %%
dtflab.grade("parallel/q3")

# %% [markdown]
# ## See it at work
#
# A step can be stopped each time that all ready ops have run. Are these the sets that you expect? The counters are
# there, too. (If the cell does not end, your function does not: *Kernel → Interrupt Kernel*.)

# %%
with tf.Session(graph=graph) as sess:
    for record in sess.step_through(graph.get_operations()):
        print(record)
print("mine:", ready_order(graph.get_operations()))
