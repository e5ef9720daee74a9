"""An early caller waits: a producer at a full queue, a consumer at an empty one. Both go on by themselves."""

import threading

import dtflab as tf

queue = tf.FIFOQueue(capacity=2, dtypes=[tf.int32], shapes=[[]])
push_six = queue.enqueue_many([[0, 1, 2, 3, 4, 5]])
take_four, take_one = queue.dequeue_many(4), queue.dequeue()

with tf.Session() as sess:
    producer = threading.Thread(target=sess.run, args=(push_six,))
    producer.start()  # finds room for two
    print(sess.run(take_four), "came through a queue with room for two")
    print(sess.run(take_one), sess.run(take_one))
    producer.join()
    consumer = threading.Thread(target=lambda: print(sess.run(take_one), "came after all"))
    consumer.start()  # finds nothing
    sess.run(queue.enqueue(6))
    consumer.join()
