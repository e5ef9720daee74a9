"""shared/q2 accepts every right answer, whichever way it is written, and says what is wrong with others."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.grading.catalogue import find
from dtflab.grading.judge import judge
from tests.grading.answers import full_marks

Q2 = "shared/q2"


def homes(shards, ids, block_rows):
    block = tf.floordiv(ids, block_rows)
    return tf.floormod(block, len(shards)), block // len(shards) * block_rows + ids % block_rows


def with_other_numbers(shards, ids, block_rows):
    task, row = homes(shards, ids, block_rows)
    return tf.nn.embedding_lookup(shards, row * len(shards) + task, "mod")


def with_masks(shards, ids, block_rows):
    task, row = homes(shards, ids, block_rows)
    out = 0
    for i, shard in enumerate(shards):
        places = tf.where(tf.equal(task, i))
        with tf.colocate_with(shard.op):
            rows = tf.gather_nd(shard, tf.gather_nd(row, places)[:, None])
        out += tf.scatter_nd(places, rows, [tf.size(ids, out_type=tf.int64), 32])
    return out


def one_by_one(shards, ids, block_rows):
    task, row = homes(shards, ids, block_rows)
    parts = []
    for i, shard in enumerate(shards):
        mine = tf.boolean_mask(row, tf.equal(task, i))
        with tf.device(shard.device):
            parts.append(tf.nn.embedding_lookup(shard, mine))
    places = [tf.boolean_mask(tf.range(tf.size(ids)), tf.equal(task, i)) for i in range(len(shards))]
    return tf.gather(tf.concat(parts, 0), tf.invert_permutation(tf.concat(places, 0)))


def each_row_once(shards, ids, block_rows):
    different, back = tf.unique(ids)
    return tf.gather(with_other_numbers(shards, different, block_rows), back)


def sorted_by_task(shards, ids, block_rows):
    task, row = homes(shards, ids, block_rows)
    with tf.device(shards[0].device):
        first = tf.gather(shards[0], tf.dynamic_partition(row, task, len(shards))[0])
    rest = []
    for i in range(1, len(shards)):
        with tf.device(shards[i].device):
            rest.append(tf.gather(shards[i].read_value(), tf.dynamic_partition(row, task, len(shards))[i]))
    return tf.dynamic_stitch(tf.dynamic_partition(tf.range(tf.size(ids)), task, len(shards)), [first, *rest])


RIGHT = [with_other_numbers, with_masks, one_by_one, each_row_once, sorted_by_task]


@pytest.mark.parametrize("answer", RIGHT)
def test_every_right_answer_gets_full_marks(answer, monkeypatch):
    full_marks(Q2, answer, monkeypatch, seeds="012")


BAD = {
    "nothing": (lambda shards, ids, block_rows: None, "lookup returned None; expected: a tensor"),
    "one row": (lambda shards, ids, block_rows: shards[0][0], "lookup gave a tensor of shape [32]; expected"),
    "zeros": (lambda shards, ids, block_rows: tf.zeros([tf.size(ids), 32]), "it gave none of the table"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(name):
    answer, message = BAD[name]
    score = tf.grade(Q2, answer)
    assert score == 0 and message in score.text, score.text


def on_the_first_ps(shards, ids, block_rows):
    """Little reaches the worker, but a whole shard goes from one parameter server to another."""
    task, row = homes(shards, ids, block_rows)
    with tf.device("/job:ps/task:0"):
        found = [tf.gather(shard, rows) for shard, rows in zip(shards, tf.dynamic_partition(row, task, len(shards)))]
        return tf.dynamic_stitch(tf.dynamic_partition(tf.range(tf.size(ids)), task, len(shards)), found)


def test_what_goes_to_another_parameter_server_counts_too():
    score = tf.grade(Q2, on_the_first_ps)
    assert score == 7 and "left the parameter servers" in score.text, score.text


def test_the_shards_need_not_be_of_one_length():
    """The first of some ends with a block that is not full, whose rows are asked for, too."""

    def equal_shards(shards, ids, block_rows):
        task, row = homes(shards, ids, block_rows)
        row = row % shards[-1].shape[0].value
        return tf.nn.embedding_lookup(shards, row * len(shards) + task, "mod")

    question = find(Q2)
    seen = [judge(question, {question.answer: equal_shards}, "0", student) for student in ("ada", "bob", "cyd", "dan")]
    assert {report.points for report in seen} == {6}
