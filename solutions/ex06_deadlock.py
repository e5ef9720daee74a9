# %% [markdown]
# # Exercise 06: jobs that do not block each other
#
# **Each training job needs two GPUs. Three jobs start, and nothing happens any more: no error, no message. Why?**
#
# *Tokens* settle which job may use a GPU: each GPU has a queue with one token in it. A job takes the tokens of its two
# GPUs, works, and puts them back. A queue makes a program that takes from it wait until there is something. That is all
# it takes to block everybody forever: a *deadlock*.

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## A deadlock
#
# First look. Two jobs, two GPUs. The first job takes the tokens of GPU 0, then 1; the second those of GPU 1, then 0. In
# virtual time, dtflab sees when all wait and nothing more can happen, and reports which op waits for which queue. (In
# real time they would wait until you stop them.) What do the two jobs hold, and what do they wait for? Predict, then
# run.

# %%
with tf.Graph().as_default(), tf.Cluster(worker=1, clock="virtual") as cluster, tf.Session(cluster.target) as sess:
    tokens = [tf.FIFOQueue(1, [tf.int32], shapes=[[]], name=f"gpu{number}") for number in range(2)]
    sess.run([queue.enqueue(number) for number, queue in enumerate(tokens)])
    jobs = []
    for i, j in ((0, 1), (1, 0)):
        one = tokens[i].dequeue(name=f"job{i}_takes_gpu{i}")
        with tf.control_dependencies([one]):
            jobs.append(tokens[j].dequeue(name=f"job{i}_takes_gpu{j}"))
    try:
        sess.run(jobs)
    except tf.errors.InternalError as error:
        print(error.message)

# %% [markdown]
# ## Your task
#
# Write `job(tokens, i, j, work)`. `tokens` is a list of queues, one for each GPU, with one token each. The job needs
# GPUs `i` and `j`. Return a tensor; when it is run, the job
#
# - takes the tokens of both GPUs from their queues;
# - works: `work()` makes the op for that, and returns its tensor. It must not run before the job has both tokens;
# - after that, puts both tokens back, each as it was and into its own queue; the value of the tensor that you return
#   is that of the work.
#
# Jobs with any pairs of two different GPUs run at the same time. They must never wait for each other forever, and a job
# must not wait for GPUs that it does not need.
#
# An op made inside `with tf.control_dependencies([a, b]):` runs after `a` and `b`.


# %%
def job(tokens, i, j, work):
    """The result of work(), done while the job holds the tokens of GPUs i and j."""
    ### BEGIN SOLUTION
    first, second = min(i, j), max(i, j)  # all jobs take tokens in the same order
    one = tokens[first].dequeue()
    with tf.control_dependencies([one]):
        two = tokens[second].dequeue()
    with tf.control_dependencies([two]):
        result = work()
    with tf.control_dependencies([result]):
        back = [tokens[first].enqueue(one), tokens[second].enqueue(two)]
    with tf.control_dependencies(back):
        return tf.identity(result)
    ### END SOLUTION


# %% [markdown]
# ## Do they all end?
#
# The next cell runs jobs in circles, and jobs whose GPUs are busy. Stuck? `%dtf_grade queues/q2 --hint`.

# %%
dtflab.grade("queues/q2")

# %% [markdown]
# ## See it at work
#
# Five jobs in a circle of five GPUs. In which order do they work? Two jobs that are not neighbours could work at the
# same time.

# %%
with tf.Graph().as_default(), tf.Cluster(worker=1, clock="virtual") as cluster, tf.Session(cluster.target) as sess:
    tokens = [tf.FIFOQueue(1, [tf.int32], shapes=[[]], name=f"gpu{number}") for number in range(5)]
    sess.run([queue.enqueue(number) for number, queue in enumerate(tokens)])
    done = tf.Variable(0)
    sess.run(done.initializer)
    jobs = [job(tokens, i, (i + 1) % 5, lambda: tf.assign_add(done, 1) + 0) for i in range(5)]
    for i, place in enumerate(sess.run(jobs)):
        print(f"the job with GPUs {i} and {(i + 1) % 5} was number {place}")
