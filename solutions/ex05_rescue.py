# %% [markdown]
# # Exercise 05: rescue a model that nobody saved
#
# **Days of training on a cluster have just ended, and only now do you see that the program has no `Saver`. Is the model
# lost?**
#
# Which of these variables still have their trained values? Choose all of them, with a reason, before you go on.
#
# | | |
# | --- | --- |
# | A | a variable on `/job:ps/task:0`, after the program that trained it has ended |
# | B | one on `/job:ps/task:1`, in the container `experiment`, after `tf.Session.reset(target, ["experiment"])` |
# | C | one on `/job:ps/task:1`, in no container, after the same reset |
# | D | one on `/job:worker/task:0`, after that task was restarted |
# | E | one of a local session, `tf.Session()`, after that session was closed |

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# Write your letters between the quotes, and run the cell. It tells you what to look at in the run below. It gives no
# points, so a wrong guess costs nothing.

# %%
dtflab.predict("shared/q1", "AC")

# %% [markdown]
# ## A run that shows it
#
# A program trains four variables on a cluster, and one in a local session, until each is 1.0. Then these things happen.
# At the end, another program looks for what is left: it builds the same graph, and does *not* initialize it.


# %%
def four():
    """Variables A to D, in the default graph."""
    with tf.device("/job:ps/task:0"):
        tf.get_variable("A", [], initializer=tf.zeros_initializer())
    with tf.device("/job:ps/task:1"):
        with tf.container("experiment"):
            tf.get_variable("B", [], initializer=tf.zeros_initializer())
        tf.get_variable("C", [], initializer=tf.zeros_initializer())
    with tf.device("/job:worker/task:0"):
        tf.get_variable("D", [], initializer=tf.zeros_initializer())


def one():
    """Variable E, in the default graph."""
    tf.get_variable("E", [], initializer=tf.zeros_initializer())


def train(target, build):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        sess.run(tf.global_variables_initializer())
        sess.run([variable.assign_add(1.0) for variable in tf.global_variables()])


def look(target, build):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        build()
        for variable in tf.global_variables():
            there = sess.run(tf.is_variable_initialized(variable))
            print(variable.op.name, sess.run(variable) if there else "has no value")


# cluster = %dtf_cluster --ps 2 --worker 2
target = cluster.target_of("worker", 1)
train(target, four)
train("", one)  # "" is the target of a local session
tf.Session.reset(target, ["experiment"])
cluster.restart("worker", 0)
look(target, four)
look("", one)

# %% [markdown]
# Would you choose other letters now? Go back to your cell, change them, and run it again: it gives the reasons.
#
# A session is only a client's way to the tasks. So ask for each variable: does the memory that held it still exist?
#
# ## Your task
#
# Write `rescue(target, build, path)`:
#
# - `build()` makes the model's variables in the default graph, as the training program did: same names, same devices,
#   same containers;
# - `target` is the session target of a task of the cluster;
# - save all variables that still have a value (some always have) to the checkpoint `path`, as they were trained;
# - return a list of the names of the others: those are lost;
# - leave the cluster as it is. A lost variable that gets a new value looks trained to a later program.
#
# `tf.is_variable_initialized(variable)` is an op that says whether a variable has a value; `variable.op.name` is its
# name.


# %%
def rescue(target, build, path):
    """Save what is left of the model of `build` to `path`; returns the names of the variables that are lost."""
    ### BEGIN SOLUTION
    left, lost = [], []
    with tf.Graph().as_default():
        build()
        with tf.Session(target) as sess:  # and no initializer
            for variable in tf.global_variables():
                if sess.run(tf.is_variable_initialized(variable)):
                    left.append(variable)
                else:
                    lost.append(variable.op.name)
            tf.train.Saver(left).save(sess, path)
    return lost
    ### END SOLUTION


# %% [markdown]
# ## How good is it?
#
# The checks train on a real cluster, let these things happen, and read your checkpoint. `%dtf_grade shared/q1 --hint`
# in a cell of your own gives a hint, a bigger one each time.

# %%
dtflab.grade("shared/q1")

# %% [markdown]
# ## See it at work
#
# Here is a program that trains and ends without saving. Which of its two variables is in the checkpoint? Predict, run,
# and then remove the line with `restart`.


# %%
def build():
    with tf.device("/job:ps/task:0"):
        tf.get_variable("weights", [3])
    with tf.device("/job:worker/task:0"):
        tf.get_variable("step", [], initializer=tf.zeros_initializer())


# cluster = %dtf_cluster --ps 1 --worker 2
with tf.Graph().as_default(), tf.Session(cluster.target) as sess:  # the program that trains, and ends
    build()
    weights, step = tf.global_variables()
    sess.run(tf.global_variables_initializer())
    sess.run([weights.assign_add(tf.ones([3])), step.assign_add(1.0)])
    print("trained:", sess.run(weights))

cluster.restart("worker", 0)

# %%
import tempfile

with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():  # another program, with a graph of its own
    print("lost:", rescue(cluster.target_of("worker", 1), build, f"{folder}/model.ckpt"))
    for name, shape in tf.train.list_variables(f"{folder}/model.ckpt"):
        print("saved:", name, shape, tf.train.load_variable(f"{folder}/model.ckpt", name))
