"""Wrong answers to queues/q2, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def stages(tokens, first, second, work, returns=True):
    with tf.control_dependencies([]):
        one = tokens[first].dequeue()
    with tf.control_dependencies([one]):
        two = tokens[second].dequeue()
    with tf.control_dependencies([two]):
        result = work()
    with tf.control_dependencies([result]):
        back = [tokens[first].enqueue(one)]
        if returns:
            back.append(tokens[second].enqueue(two))
    with tf.control_dependencies(back):
        return tf.identity(result)


def takes_as_named(tokens, i, j, work):
    return stages(tokens, i, j, work)


def takes_both_at_once(tokens, i, j, work):
    one, two = tokens[i].dequeue(), tokens[j].dequeue()
    with tf.control_dependencies([one, two]):
        result = work()
    with tf.control_dependencies([result]):
        back = [tokens[i].enqueue(one), tokens[j].enqueue(two)]
    with tf.control_dependencies(back):
        return tf.identity(result)


def keeps_a_token(tokens, i, j, work):
    return stages(tokens, min(i, j), max(i, j), work, returns=False)


def works_without(tokens, i, j, work):
    result = work()
    with tf.control_dependencies([result]):
        return stages(tokens, min(i, j), max(i, j), lambda: tf.identity(result))
