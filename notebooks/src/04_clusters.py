# %% [markdown]
# # Clusters
#
# **Your program says `sess.run(c)`, and parts of `c` belong to three machines. Who tells each machine what to do? What
# do they send each other? And what do you see when one of them is gone?**
#
# So far one program had all devices to itself. From here on there are several programs, on several machines. You don't
# need the machines: all of them live in this notebook, and later in processes of their own. The program stays the same.

# %%
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## Five words
#
# - A **task** is a TensorFlow server: a program that waits for work. It owns devices, such as a CPU and two GPUs.
# - A **job** is a group of tasks with the same role. A job called `ps` (*parameter server*) usually keeps what a model
#   has learned; a job called `worker` computes.
# - A **cluster** is all tasks of all jobs that work together.
# - A **cluster spec** is its address book: the address of each task, by job. Every task gets the same one.
# - A **client** is a program that builds a graph and has the cluster run it. Yours, for example.
#
# Here is an address book of two machines. Machine A has two tasks, at two *ports* (numbers that tell apart the servers
# on one machine); machine B has one.

# %%
spec = tf.train.ClusterSpec(
    {
        "ps": ["machine-a.example.com:2221"],  # /job:ps/task:0
        "worker": [
            "machine-a.example.com:2222",  # /job:worker/task:0
            "machine-b.example.com:2222",  # /job:worker/task:1
        ],
    }
)
print("jobs:", spec.jobs)
print("workers:", spec.num_tasks("worker"))
print("the second worker:", spec.task_address("worker", 1))

# %% [markdown]
# On real machines each task is started by a program of its own. It says which entry of the address book it is, and then
# serves forever:
#
# ```python
# server = tf.train.Server(spec, job_name="worker", task_index=0)  # on machine A
# server.join()
# ```
#
# `tf.Cluster` does this for all tasks at once. In this notebook an address is only a name, so no such machine is
# needed. We give machine A two simulated GPUs and machine B one. Two tasks share machine A: the `ps` must not take the
# GPUs' memory from the worker, so it is shown none, as `CUDA_VISIBLE_DEVICES=""` would do.

# %%
if "cluster" in globals():
    cluster.stop()  # this cell was run before: the addresses are taken
sees = {"ps": "", "worker": ["0,1", "0"]}  # which GPUs of its machine each task may use
cluster = tf.Cluster(spec, gpus=2, visible_devices=sees, name="machines A and B")
cluster

# %% [markdown]
# ## A session on machine B
#
# A client opens a session on *one* task, whichever it likes. That task becomes the **master** of the session: it
# decides where each op runs, and has the other tasks do their part. Every task can be a master, and every task can
# work: there is no special machine.
#
# In the next cell nothing is pinned to a device. **Predict: on which machine, and on which device, will `c` be
# computed?**

# %%
tf.reset_default_graph()
a = tf.constant(1.0, name="a")
c = tf.multiply(a, 3.0, name="c")

sess = tf.Session("grpc://machine-b.example.com:2222")
print("c =", sess.run(c))
# %dtf_placement c --session sess

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# On the master's own best device: GPU 0 of machine B. No other task took part.
#
# </details>
#
# One client can open sessions on several tasks, and one task can be the master of many clients. `cluster.run(work)` of
# lesson 00 starts a client next to each worker; here, one client has the whole cluster to itself.
#
# ## Pin ops to tasks
#
# The name of a device can begin with a job and a task. What you leave out is filled in:
#
# - no device: the best one of that task;
# - no task: `/job:ps` means task 0 of that job. But if the master belongs to the job, it means the master;
# - neither job nor task: the master, or, if it has no such device, a task that has one.
#
# The master is still machine B. **Predict: on which task and device will each of the ops `a` to `f` run?**

# %%
tf.reset_default_graph()
with tf.device("/job:ps/task:0/cpu:0"):
    a = tf.constant(1.0, name="a")
with tf.device("/job:worker/task:0/gpu:1"):
    b = tf.add(a, 2.0, name="b")
c = tf.add(a, b, name="c")
with tf.device("/job:ps"):
    d = tf.multiply(a, 10.0, name="d")
with tf.device("/job:worker"):
    e = tf.multiply(a, 20.0, name="e")
with (
    tf.device("/job:worker/task:0"),
    tf.device("/gpu:1"),
):  # the inner block adds to the outer
    f = tf.multiply(a, 30.0, name="f")

sess = tf.Session("grpc://machine-b.example.com:2222")
for name, value in zip("cdef", sess.run([c, d, e, f])):
    print(f"{name} = {value}")
# %dtf_placement [c, d, e, f] --session sess

# %% [markdown]
# In the picture: point at `a`. Its tensor goes to every other task.
#
# <details><summary><b>Show why</b></summary>
#
# `e` is the surprise: `/job:worker` without a task went to machine B, because the master there is a worker. If you mean
# a task, say which.
#
# </details>
#
# With a master on machine A, the same graph runs in another place:

# %%
with tf.Session("grpc://machine-a.example.com:2222") as on_a:
    picture = tf.viz.placement(e, on_a)
picture

# %% [markdown]
# ## What they say to each other
#
# Each task offers two services. Its **master service** talks to clients; its **worker service** does what masters ask
# of it, and hands tensors to other tasks. `tf.watch()` sees who calls whom. **Predict: which of the six services are
# called in one step of this session?**

# %%
# Figure 12-6
with tf.watch() as seen:
    sess.run(c)
tf.viz.machines(cluster, seen)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# The client called one master. This master called the worker services of the other two tasks; for what is on its own
# task it calls nobody, it just does it. Had the client opened its session on another task, another master service would
# be coloured. (Tasks also fetch tensors from each other. That is left out here; the next picture has it.)
#
# </details>
#
# Now the same step in the order of time. `c = a + b`: `a` is on the `ps`, `b` on machine A, `c` on machine B.
#
# **Predict: in one step, how many tensors travel from task to task? Which task makes the first move: the one that has a
# tensor, or the one that needs it?**

# %%
# %dtf_wire c

# %% [markdown]
# Read it from top to bottom: each line down is a task, each arrow a call, with the bytes that it carries. In the
# picture: move the slider, and the messages travel from task to task.
#
# <details><summary><b>Show why</b></summary>
#
# Two tensors, or rather one tensor twice; and the task that needs it asks.
#
# 1. The client asks the master, and only the master: *run the step that fetches `c`* (`RunStep`).
# 2. The master asks each other task to run its part (`RunGraph`). No graph is sent: it was sent before, once.
# 3. A task that needs a tensor of another task asks for it (`RecvTensor`), and gets it as soon as it is there. `a`
#    travels twice, because two tasks need it.
# 4. When every part is done, the master answers the client. (`CleanupGraph`: the step is over, forget what is left of
#    it.)
#
# The tensors do not pass through the client, nor through the master unless it needs them itself or you fetch them. They
# go from the task that has them to the task that needs them. Any task may call any other: on real machines, all these
# ports must be open to each other.
#
# </details>
#
# ## The first step is different
#
# Before a task can run its part of a graph, it must have that part. **Predict: what will a new session and its first
# two steps add to the picture?**

# %%
with tf.Session("grpc://machine-b.example.com:2222") as new, tf.watch() as seen:
    new.run(c)
    new.run(c)
# %dtf_wire seen

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# `CreateSession` brings the client's graph to the master, which greets *every* task (`GetStatus`) and announces the
# session to it. With the first step it places the graph, cuts it, and gives each task its part (`RegisterGraph`). The
# second step, and every later one, only says *run it*. That is why TensorFlow has you build a graph first: it is sent
# once and run a million times.
#
# </details>
#
# ## Count the bytes
#
# A layer has 1,000 × 1,000 weights: 4 MB. They are on the `ps`. A batch of one example, 4 kB, is on machine B.
#
# **Predict: how many bytes travel in one step if the product is computed on machine B? And if it is computed on the
# `ps`?**

# %%
tf.reset_default_graph()
with tf.device("/job:ps/task:0"):
    weights = tf.Variable(tf.ones([1000, 1000]), name="weights")
batch = tf.placeholder(tf.float32, [1, 1000], name="batch")
with tf.device("/job:worker/task:1"):
    product_on_b = tf.reduce_sum(tf.matmul(batch, weights))
with tf.device("/job:ps/task:0"):
    product_on_ps = tf.matmul(batch, weights)
with tf.device("/job:worker/task:1"):
    product_on_ps = tf.reduce_sum(product_on_ps)

sess = tf.Session("grpc://machine-b.example.com:2222")
sess.run(weights.initializer)
example = [[1.0] * 1000]
values, sent = [], []
products = {"machine B": product_on_b, "the ps": product_on_ps}
for product in products.values():
    sess.run(product, {batch: example})  # the first time; we look at the second one
    with tf.watch() as seen:
        values.append(f"{sess.run(product, {batch: example}):,.0f}")
    calls = [call for call in seen.calls if call.method == "RecvTensor"]
    sent.append(sum(call.nbytes for call in calls))
columns = {"product on": [*products], "result": values, "bytes from task to task": sent}
tf.viz.table(columns)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Same result, 500 times fewer bytes: 4,000 for the batch on its way to the `ps`, 4,000 for the product on its way back.
# (Parameter servers still rarely compute products. With 50 workers, one `ps` would do the work of all of them, one
# after the other.)
#
# </details>
#
# ## Now break it: a wrong address
#
# Nobody listens at port 1 of this machine. TensorFlow would wait long, or forever, and say nothing. dtflab waits ten
# seconds; here we make it half a second.

# %%
tf.timeouts.connect = 0.5  # seconds
try:
    tf.Session("grpc://localhost:1").run(tf.constant("hello"))
except tf.errors.UnavailableError as error:
    display(error)

# %% [markdown]
# ## Now break it: an address book with a mistake
#
# Three servers are started, as if each by a program of its own. Somebody tried the program out on one machine first,
# and the workers still have the address book of that day: it says that the `ps` is at `localhost:1`. (Each server also
# prints that its address is only a name here.)
#
# The client opens its session on worker 0, and asks for something that worker 0 can compute alone. **Predict: will it
# get it?**

# %%
for server in globals().get("servers", []):
    server.stop()  # this cell was run before: the addresses are taken
today = tf.train.ClusterSpec(
    {"ps": ["pluto:2222"], "worker": ["mars:2222", "venus:2222"]}
)
old = tf.train.ClusterSpec(
    {"ps": ["localhost:1"], "worker": ["mars:2222", "venus:2222"]}
)
servers = [
    tf.train.Server(today, job_name="ps", task_index=0),
    tf.train.Server(old, job_name="worker", task_index=0),
    tf.train.Server(old, job_name="worker", task_index=1),
]

# %%
tf.reset_default_graph()
alone = tf.constant(42.0)
tf.timeouts.tasks = 2.0  # seconds: how long to wait for a task,
tf.timeouts.notice = 1.0  # and how often to say so
try:
    with tf.Session(servers[1].target) as sess:
        print(sess.run(alone))
except tf.errors.UnavailableError as error:
    display(error)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# No: you saw that a new session greets *every* task of the address book, whatever the graph will need. The message
# names the task and the address that does not answer. Compare this address with the one at which the task was really
# started. (The line *CreateSession still waiting* is TensorFlow's own, and a common cry for help on the Web: there it
# goes on forever.)
#
# </details>
#
# A session can also say which tasks it needs. Then the others may be down:

# %%
config = tf.ConfigProto(device_filters=["/job:worker/task:0"])
with tf.Session(servers[1].target, config=config) as sess:
    print(sess.run(alone))

# %%
for server in servers:
    server.stop()
tf.timeouts.connect, tf.timeouts.tasks, tf.timeouts.notice = (
    10.0,
    300.0,
    5.0,
)  # as they were

# %% [markdown]
# ## Now break it: a task goes down
#
# Back to machines A and B, and to a variable on the `ps`.

# %%
tf.reset_default_graph()
with tf.device("/job:ps/task:0"):
    x = tf.Variable(1.0, name="x")
with tf.device("/job:worker/task:0"):
    y = tf.add(x, 2.0, name="y")
sess = tf.Session("grpc://machine-b.example.com:2222")
sess.run(x.initializer)
print("y =", sess.run(y))

# %% [markdown]
# Now the `ps` crashes in the middle of the session. **Predict: what does the next step say? And when the `ps` has been
# started again, does the step work?**


# %%
def attempt(sess):
    """Run y; show its value, or what went wrong."""
    try:
        print("y =", sess.run(y))
    except tf.errors.OpError as error:
        display(error)


cluster.kill("ps", 0)
attempt(sess)

cluster.restart("ps", 0)
attempt(sess)

sess = tf.Session("grpc://machine-b.example.com:2222")
attempt(sess)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Three errors, three answers:
#
# - `UnavailableError`: the task is not there. Start it again.
# - `AbortedError`: the task is there, but has forgotten this session. Open a new one.
# - `FailedPreconditionError`: the new task has empty variables. Initialize them, or restore them from a checkpoint.
#
# `tf.train.MonitoredTrainingSession` waits for the task, and does the second and the third by itself. You only have to
# restart the task.
#
# </details>
#
# ## Is all this real?
#
# The tasks above live in this notebook, and what they “send” is handed over in memory. Here is the same program with
# three operating system processes, which talk over real network connections on this machine. They speak TensorFlow's
# own protocol. It uses two libraries: gRPC, with which a program calls a function of another program over a network,
# and protocol buffers, which pack what is sent. So a task of dtflab and one of TensorFlow can even be in the same
# cluster.

# %%
# real = %dtf_cluster --ps 1 --worker 2 --engine process --name real
real

# %%
with tf.Session(real.target_of("worker", 1)) as sess:
    sess.run(x.initializer)
    print("y =", sess.run(y))
    metadata = sess.trace(y)
# %dtf_timeline metadata

# %% [markdown]
# The ops themselves need microseconds. The rest is waiting: for a call to be packed, sent through the operating system
# and unpacked, and for the answer. A step on several machines pays off only if there is much to compute in it.

# %%
# %dtf_cluster stop --name real
cluster.stop()

# %% [markdown]
# ## Exercise
#
# [exercises/ex04_machines](../exercises/ex04_machines.ipynb): three machines with two GPUs each. Which servers do you
# start on them, and what may each of them see?
#
# ## What you can do now
#
# - Describe a cluster, open a session on any of its tasks, and say where each op runs.
# - Read a sequence chart of a step: `RunStep`, `RunGraph`, `RecvTensor`, and count the bytes.
# - Tell from an error which task is missing, and whether to restart it, to open a session, or to initialize variables.
