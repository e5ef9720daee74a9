"""Pools of threads: `inter_op` for operations that run next to each other, `intra_op` for the parts of one.

Two branches that wait for each other show that operations of one device do run at the same time.
"""

import dtflab as tf

config = tf.ConfigProto()
config.inter_op_parallelism_threads = 4
config.intra_op_parallelism_threads = 2
config.use_per_session_threads = True

there, back = (tf.FIFOQueue(1, tf.float32, shapes=[[]], name=name) for name in ("there", "back"))
with tf.control_dependencies([there.enqueue(1.0)]):
    left = back.dequeue()
with tf.control_dependencies([back.enqueue(2.0)]):
    right = there.dequeue()
product = tf.reduce_sum(tf.matmul(tf.ones([300, 200]), tf.ones([200, 300])))

with tf.Session(config=config) as sess:
    print(sess.run([left, right, product]))
