"""A device block pins what is made in it. Ops made outside go where the placer's default is."""

import dtflab as tf

with tf.device("/cpu:0"):
    a = tf.Variable(3.0, name="a")
    b = tf.constant(4.0, name="b")
c = tf.multiply(a, b, name="c")

for op in (a.op, a.initializer, b.op, c.op):
    print(f"{op.name} is pinned to {op.device or 'nothing'}")
with tf.Session() as sess:
    sess.run(a.initializer)
    print(sess.run(c))
