# %% [markdown]
# # Shared state
#
# **A session ends. Where are the variables that it trained? Who else can see them, and who can overwrite them by
# mistake?**
#
# A *variable* is the part of a graph that remembers something from one step to the next: weights, a step counter. The
# graph only says that there is one. The value is somewhere else, and this lesson is about where.

# %%
import threading

import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## A local session forgets
#
# One graph, two sessions, one after the other, without a cluster. **Predict: what will the second one print?**

# %%
tf.reset_default_graph()
x = tf.Variable(0.0, name="x")
increment = tf.assign_add(x, 1.0)

with tf.Session() as first:
    first.run(x.initializer)
    print("first session:", first.run(increment), first.run(increment))

try:
    with tf.Session() as second:
        print("second session:", second.run(increment))
except tf.errors.FailedPreconditionError as error:
    print("second session:", error.message.partition(". ")[0])

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# A local session is a small cluster with one task. When the session is closed, the task ends, and its variables with
# it.
#
# </details>
#
# ## A cluster remembers
#
# Here is a whole client program as a function: it builds its own graph, opens a session at `target`, adds one to `x`,
# and ends. Nothing of it remains, except what the cluster keeps.

# %%
# cluster = %dtf_cluster --ps 2 --worker 2
cluster


# %%
def program(target, device, init=False):
    """A client program from its start to its end; returns the value of x."""
    with tf.Graph().as_default(), tf.Session(target) as sess:
        with tf.device(device):
            x = tf.Variable(0.0, name="x")
        if init:
            sess.run(x.initializer)
        return sess.run(tf.assign_add(x, 1.0))


worker0, worker1 = cluster.target_of("worker", 0), cluster.target_of("worker", 1)

# %% [markdown]
# Two programs run one after the other, on different masters. Only the first one initializes `x`. **Predict: what do
# they return?**

# %%
print("first program: ", program(worker0, "/job:ps/task:0", init=True))
print("second program:", program(worker1, "/job:ps/task:0"))

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# The second program found the `x` of the first, although the first has ended, and its graph and session are gone. The
# value belongs to a *task*: to `/job:ps/task:0`. Every client that names the same variable on the same task gets the
# same value.
#
# </details>
#
# Now nobody pins `x` to a device. **Predict: what will the second program find?**

# %%
print("first program: ", program(worker0, None, init=True))
try:
    print("second program:", program(worker1, None))
except tf.errors.FailedPreconditionError as error:
    print("second program:", error.message.partition(". ")[0])

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# An op that is not pinned runs on its master's own task, variables included. The first `x` is on worker 0. The second
# program looked on worker 1, and found a variable without a value. **If programs are to share a variable, pin it.**
#
# </details>
#
# Which task holds what now? There are three variables called `x`. The one on worker 1 was created when the second
# program looked for it; it has no value, so no bytes:

# %%
# %dtf_vars cluster

# %% [markdown]
# ## Now break it: two programs, one name
#
# Ann and Bob use the same cluster, and have never met. Each is looking for a number: Ann's data has the mean 8, Bob's
# 2. Both make a variable called `guess` on the parameter server, and move it towards their data by gradient descent.
#
# They take turns, one step at a time. (Point at a curve to read its values.) **Predict: where will Ann's guess end?**


# %%
class Person:
    """A client program that looks for the mean of its data."""

    def __init__(self, mean, target, scope="", container=""):
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        graph, task = tf.Graph(), "/job:ps/task:0"
        with graph.as_default(), tf.device(task), tf.container(container):
            with tf.name_scope(scope):
                self.guess = tf.Variable(5.0, name="guess")
            train = optimizer.minimize(tf.square(self.guess - mean))
            with tf.control_dependencies([train]):
                self.step = tf.identity(self.guess.read_value())
            self.session = tf.Session(target)
            self.session.run(self.guess.initializer)


# %%
def take_turns(ann, bob, steps=25):
    """Both make their steps, one after the other; returns the guesses of each."""
    guesses = {"Ann, whose mean is 8": [], "Bob, whose mean is 2": []}
    for _ in range(steps):
        for person, own in zip([ann, bob], guesses.values()):
            own.append(person.session.run(person.step))
    return guesses


guesses = take_turns(Person(8, worker0), Person(2, worker1))
tf.viz.curve(range(25), guesses, xlabel="step", ylabel="guess")

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Near 5. Both change the same variable. Each of Ann's steps moves it up a little, and each of Bob's moves it down
# again: it stays near 5, where neither wants it. There is no error, no warning, and each program is correct. And Bob
# *initialized* the variable when he joined: had Ann been training for a week, her work would have been gone.
#
# </details>
#
# **Cure 1: other names.** A name scope (or `tf.variable_scope`) puts a prefix before each name.

# %%
guesses = take_turns(Person(8, worker0, scope="ann"), Person(2, worker1, scope="bob"))
tf.viz.curve(range(25), guesses, xlabel="step", ylabel="guess")

# %% [markdown]
# **Cure 2: containers.** Each task keeps its variables in *containers*: rooms with a name. The same name can be used in
# every room. A program that says nothing uses the default room, which has no name. `tf.container("ann")` around the
# construction phase chooses another:

# %%
guesses = take_turns(
    Person(8, worker0, container="ann"), Person(2, worker1, container="bob")
)
ends = [f"{values[-1]:.2f}" for values in guesses.values()]
tf.viz.table({"who": [*guesses], "guess at the end": ends})

# %%
# %dtf_vars cluster

# %% [markdown]
# On `ps:0` there are five guesses now, and no two of the last four collide: a variable is known by its **task,
# container and name**. (Hatched: in a container with a name.) Containers have two advantages over scopes: names stay
# short, and a whole room can be emptied at once. You will see that below. (And a variable without a name? It is called
# `Variable`, the next one `Variable_1`, in every program. On a cluster, name your variables.)
#
# ## Sharing on purpose
#
# Containers separate variables that should be apart, and join those that should be together. Four clients use one
# cluster:
#
# - A and B share the `x` of the container without a name;
# - C and D share another `x`, in the container `problem-1`;
# - C also uses the `y` of the container without a name, as B does.
#
# In the picture, point at a client to see only the lines from it, or at a variable to see only those to it.
#
# All start at 0. A adds 1, B adds 10, C adds 100, D adds 1000, each to every variable that it uses. **Predict: what are
# the values of both `x` and of `y` at the end?**


# %%
def client(target, amount, variables, init=False):
    """Add `amount` to variables, given by container and name; returns their values."""
    with (
        tf.Graph().as_default(),
        tf.device("/job:ps/task:0"),
        tf.Session(target) as sess,
    ):
        sums = []
        for container, name in variables:
            with tf.container(container):
                sums.append(tf.assign_add(tf.Variable(0.0, name=name), amount))
        if init:
            sess.run(tf.global_variables_initializer())
        return sess.run(sums)


for variables in ([("", "x"), ("", "y")], [("problem-1", "x")]):
    client(worker0, 0, variables, init=True)

# %%
# Figure 12-7
clients = [
    threading.Thread(target=client, name=name, args=args)
    for name, *args in (
        ("A", worker0, 1, [("", "x")]),
        ("B", worker1, 10, [("", "x"), ("", "y")]),
        ("C", worker0, 100, [("problem-1", "x"), ("", "y")]),
        ("D", worker1, 1000, [("problem-1", "x")]),
    )
]
with tf.watch() as seen:
    for each in clients:
        each.start()
    for each in clients:
        each.join(60)
tf.viz.clients(seen)

# %%
asked = [("", "x"), ("", "y"), ("problem-1", "x")]
values = [f"{client(worker0, 0, [each])[0]:g}" for each in asked]
containers, names = zip(*asked)
names_of = [repr(container) for container in containers]
tf.viz.table({"container": names_of, "variable": names, "value": values})

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# No client had to know the others: task, container and name were enough. Queues and readers are kept in containers,
# too (lesson 06).
#
# </details>
#
# ## Empty a room
#
# `tf.Session.reset(target, [container])` frees everything in a container, on every task. Two sessions read the
# variables; then somebody resets `problem-1`, through worker 0. **Predict: which of the four lines will show a
# number?**

# %%
tf.reset_default_graph()
with tf.device("/job:ps/task:0"):
    y = tf.Variable(110.0, name="y")
    with tf.container("problem-1"):
        x = tf.Variable(1100.0, name="x")
sessions = {"worker 0": tf.Session(worker0), "worker 1": tf.Session(worker1)}
# The values that they have, so that this cell can run again:
sessions["worker 0"].run([x.initializer, y.initializer])
for sess in sessions.values():
    sess.run([x, y])

tf.Session.reset(worker0, ["problem-1"])
rows = []
for who, sess in sessions.items():
    for what, variable in {"y": y, "x of problem-1": x}.items():
        try:
            rows.append((who, what, f"{sess.run(variable):g}"))
        except tf.errors.OpError as error:
            why = error.message.partition(". ")[0]
            rows.append((who, what, f"{type(error).__name__}: {why}"))
tf.viz.table(dict(zip(["session on", "variable", "outcome"], zip(*rows))))

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# `x` of `problem-1` has no value any more, and must be initialized before it can be used again. `y` is still there. But
# a reset also **closes all sessions of the master that was asked**, here worker 0, whatever they were doing. So tell
# the others before you reset, or go through a master that nobody uses.
#
# </details>
#
# ## One parameter server is not enough
#
# In every step, each worker reads the variables and sends back gradients of the same size. If the variables are all on
# one `ps`, all of that goes through its one network card. So they are spread over several: *sharding*.
# `tf.train.replica_device_setter` deals them like cards, one to each `ps` in turn. Everything else goes to the worker,
# unless an inner block says otherwise.
#
# Two parameter servers, five variables: **predict which is where. And where are `s`, `p1` and `p2`?**

# %%
tf.reset_default_graph()
with tf.device(tf.train.replica_device_setter(cluster=cluster.spec)):
    v = [tf.Variable(float(number), name=f"v{number}") for number in (1, 2, 3, 4, 5)]
    s = tf.add(v[0], v[1], name="s")
    with tf.device("/cpu:0"):
        p1 = tf.multiply(2.0, s, name="p1")
        with tf.device("/task:1"):
            p2 = tf.multiply(3.0, s, name="p2")

tensors = [*v, s, p1, p2]
devices = [tensor.device for tensor in tensors]
tf.viz.table({"op": [tensor.op.name for tensor in tensors], "pinned to": devices})

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# The variables take turns. `s` is on a worker, without a task: on the master's, if the master is a worker (lesson 04).
# The inner blocks of `p1` and `p2` fill in what the setter left open.
#
# </details>
#
# ## Fair in number, unfair in bytes
#
# Cards are all the same size; variables aren't. Here is a net of four layers. Each has 512 × 512 weights of 4 bytes,
# and 512 biases. So there are eight variables for two parameter servers. **Predict: how many MiB does each of them
# hold?** (Memory is counted in MiB, of 1,024 × 1,024 bytes; what travels, in MB, as the speeds of networks are.)


# %%
def layers(inputs):
    """Four layers of 512 units each."""
    for number in (1, 2, 3, 4):
        weights = tf.get_variable(f"weights{number}", [512, 512])
        biases = tf.get_variable(f"biases{number}", initializer=tf.zeros([512]))
        inputs = tf.nn.relu(tf.matmul(inputs, weights) + biases)
    return inputs


def on_empty_cluster(device, build):
    """Build and initialize a model; returns a session, and what `build` returned."""
    tf.reset_default_graph()
    # All containers; localhost is the one without a name
    tf.Session.reset(worker0, ["localhost", "ann", "bob", "problem-1"])
    with tf.device(device):
        built = build()
    sess = tf.Session(worker0)
    sess.run(tf.global_variables_initializer())
    return sess, built


setter = tf.train.replica_device_setter(cluster=cluster.spec)
on_empty_cluster(setter, lambda: layers(tf.placeholder(tf.float32, [None, 512])))
# %dtf_vars cluster

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Weights, biases, weights, biases: dealt to two tasks in turn, all weights end up on the same one. It is the worst
# possible deal, and a common one.
#
# </details>
#
# **Balance by bytes.** A `ps_strategy` is a function that chooses a task for each variable. This one remembers how many
# bytes each task has, and takes the task with the fewest.


# %%
def lightest():
    """A strategy: each variable to the task that has the fewest bytes so far."""
    held = [0] * cluster.spec.num_tasks("ps")

    def choose(op):
        task = held.index(min(held))
        held[task] += op.outputs[0].shape.num_elements() * op.outputs[0].dtype.size
        return task

    return choose


setter = tf.train.replica_device_setter(cluster=cluster.spec, ps_strategy=lightest())
on_empty_cluster(setter, lambda: layers(tf.placeholder(tf.float32, [None, 512])))
# %dtf_vars cluster

# %% [markdown]
# ## One variable that is too large
#
# A model for text begins with an *embedding*: a table with a row of numbers for each word. Ours has 12,500 words and
# 512 numbers for each: 24.4 MiB, more than all the rest together. **Predict: how much does `lightest` help?**


# %%
def text_model(partitioner=None):
    """An embedding and the four layers; returns the words asked for, and their rows."""
    words = tf.placeholder(tf.int32, [None], name="words")
    embedding = tf.get_variable("embedding", [12500, 512], partitioner=partitioner)
    rows = tf.nn.embedding_lookup(embedding, words, name="rows")
    layers(rows)
    return words, rows


setter = tf.train.replica_device_setter(cluster=cluster.spec, ps_strategy=lightest())
on_empty_cluster(setter, text_model)
# %dtf_vars cluster

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# It can't do better: no deal makes a large card smaller.
#
# </details>
#
# **Cut the variable.** A *partitioner* makes several variables out of one, and the setter deals the pieces. For the
# program it is still one variable: `embedding_lookup` finds each word in the piece that has it.

# %%
setter = tf.train.replica_device_setter(cluster=cluster.spec, ps_strategy=lightest())
sess, (words, rows) = on_empty_cluster(
    setter, lambda: text_model(tf.fixed_size_partitioner(2))
)
# %dtf_vars cluster

# %% [markdown]
# One step looks up 32 words. **Predict: does the whole embedding, 24.4 MiB or 25.6 MB, travel to the worker?**

# %%
example = {words: list(range(32))}
sess.run(rows, example)  # the first time, tasks also get their parts of the graph
# %dtf_wire rows --feed example

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# No. Each parameter server asks the worker which rows it wants, and sends only those: 32 × 512 numbers, 65.5 kB in all.
# (The picture counts 131 kB: the same rows go on to the client, which has fetched them. A training step would not.)
#
# </details>
#
# ## Exercises
#
# - [exercises/ex05_rescue](../exercises/ex05_rescue.ipynb): training ended after days, and nobody saved the model. Is
#   it lost?
# - [exercises/ex05_sharded_table](../exercises/ex05_sharded_table.ipynb): write the lookup of rows in a table that is
#   cut over parameter servers.
#
# ## What you can do now
#
# - Say where a variable lives, for how long, and which programs find it: task, container, name.
# - Keep two programs apart on one cluster, or let them share on purpose; empty a container.
# - Spread a model over parameter servers, by turns, by bytes, or by cutting a variable, and measure the gain.
