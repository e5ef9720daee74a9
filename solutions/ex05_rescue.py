# %% [markdown]
# # Exercise 05: rescue a model that nobody saved
#
# **Days of training on a cluster have just ended, and only now you see that the program has no `Saver`. Is the model
# lost?**
#
# With a *local* session it is: the variables live in the session's process and go with it. On a cluster they live in
# *tasks*. Predict before you go on, for each of these: is its value still there?
#
# | a variable that … | and then … |
# | --- | --- |
# | is on `/job:ps/task:0` | the training program ended |
# | is on `/job:ps/task:1`, in the container `reset` | somebody called `tf.Session.reset(target, ["reset"])` |
# | is on `/job:worker/task:0` | that task was started anew |

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## Your task
#
# Write `rescue(target, build, path)`:
#
# - `build()` makes the model's variables in the default graph, as the training program did: same names, same devices, same
#   containers;
# - `target` is the session target of a task of the cluster;
# - save all variables that still have a value to the checkpoint `path`, as they were trained;
# - return a list of the names of the others: those are lost.
#
# `tf.is_variable_initialized(variable)` is an op that says whether a variable has a value; `variable.op.name` is its name.


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
# The checks train on a real cluster, let these things happen, and read your checkpoint. `%dtf_grade shared/q1 --hint` in a
# cell of your own gives a hint; each time a bigger one.

# %%
dtflab.grade("shared/q1")

# %% [markdown]
# ## See it at work
#
# Here is a program that trains and ends without saving. Which of its two variables is in the checkpoint? Predict, run, and
# then take the line with `restart` away.


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
