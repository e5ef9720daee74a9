"""Lessons 4 to 7 run clean twice, and show what their texts say."""

from __future__ import annotations

import pytest

from tests.notebooks.lessons import checks_of

pytestmark = pytest.mark.timeout(900)

# Of each lesson: what its text says, and what must then stand in the outputs.
SAID = {
    "04_clusters": [
        ("GPU 0 of machine B. No other task took part", r"worker/replica:0/task:1/device:GPU:0 +3  a, c/y, c\n"),
        ("`e` is the surprise", r"task:1/device:GPU:0 +\d  c, e/y, e\n"),
        ("With a master on\nmachine A, the same graph runs in another place", r"task:0/device:GPU:0 +2  e/y, e\n"),
        ("The client called one master", r"worker:1 +\S+ +2222 +CPU:0, GPU:0 +master service +running"),
        ("the worker services of the other two", r"ps:0 +\S+ +2221 +CPU:0 +worker service +running"),
        ("`a` travels twice", r"RecvTensor +worker:0 +ps:0 +1 +4\nRecvTensor +worker:1 +ps:0 +1 +4\n"),
        (
            "greets *every* task (`GetStatus`)",
            r"GetStatus +worker:1 +ps:0 +1 +0\nGetStatus +worker:1 +worker:0 +1 +0\n",
        ),
        ("gives each task its part (`RegisterGraph`)", r"RegisterGraph +worker:1 +ps:0 +1 +0\n"),
        ("only says *run it*", r"RunGraph +worker:1 +ps:0 +2 +0\n"),
        ("4,000 for the batch on its way", r"the ps +1,000,000 +8,000\n"),
        ("we make it half a second", r"target localhost:1 did not answer within 0\.5 s"),
        ("*CreateSession still waiting*", r"CreateSession still waiting for response from worker: \S+ at localhost:1"),
        ("A session can also say which tasks it needs", r"\n42\.0\n"),
        (
            "`UnavailableError`: the task is not there",
            r"UnavailableError: Task /job:ps/replica:0/task:0 at \S+ was stopped",
        ),
        ("`AbortedError`: the task is there", r"AbortedError: Session handle is not found"),
        (
            "`FailedPreconditionError`: the new task",
            r"FailedPreconditionError: Attempting to use uninitialized value x",
        ),
        ("three operating system processes", r"y = 3\.0(.|\n)*\d ops .*on 3 devices"),
    ],
    "05_shared_state": [
        ("A local session is a small cluster", r"second session: Attempting to use uninitialized value x"),
        ("The second program found the `x` of the first", r"first program: +\S*\s*1\.0\nsecond program: 2\.0"),
        ("found a variable without a value", r"second program: Attempting to use uninitialized value x"),
        ("it has no value, so no bytes", r"worker:1 +1 +0 +x\n"),
        ("The same name can be used in every room", r"mean is 8 +7\.99\n.*mean is 2 +2\.01"),
        ("C and D share another `x`", r"(?s)^(?=.*C +uses +problem-1/x)(?=.*D +uses +problem-1/x)"),
        ("A adds 1, B adds 10, C adds 100, D adds 1000", r"'' +x +11\n'' +y +110\n'problem-1' +x +1100\n"),
        ("closes all sessions of the master that was asked", r"worker 0 +y +AbortedError"),
        ("`y` is still there", r"worker 1 +y +110\n"),
        ("all weights end up on the same one", r"ps:1 +4 +8,192 +biases1, biases2, biases3, biases4"),
        ("takes the task with the fewest", r"ps:0 +4 +2,101,248(.|\n)*ps:1 +4 +2,101,248"),
        ("It can't do better", r"ps:0 +1 +25,600,000 +embedding\n"),
        ("the setter deals the pieces", r"14,901,248 +embedding/part_0(.|\n)*14,901,248 +embedding/part_1"),
        ("65.5 kB in all", r"worker:0 +ps:0 +1 +32,768\n.* ps:1 +1 +32,768\n"),
    ],
    "06_queues": [
        ("The loader puts in 1, 2 and 3", r"got \[1\.0, 2\.0, 3\.0\]"),
        (
            "the queue was on a third task",
            r"trainer +takes from +numbers +queue +ps:0\nloader +puts into|loader +puts into",
        ),
        ("the trainer is now the slowest part", r"capacity 10: 12\.1 s"),
        ("Four. While the loader opens a file", r"3 +13\.316\n4 +12\.1228\n5 +12\.1228\n"),
        ("One element is left", r"\[1\. 2\.\] \[3\. 4\.\] left: 1"),
        ("each session has a queue of its own", r"the first session sees 1 element, the second one 0"),
        ("a plain `close` waits for it", r"a plain close waits, too\nended with"),
        ("the element is **lost**", r"Timed out(.|\n)*?left: 0"),
        ("the second one took the horse", r"b'a dog'\s+2\n"),
        ("`OutOfRangeError` is not a failure", r"OutOfRangeError: .*insufficient elements(.|\n)*left: 1"),
        ("`dequeue_up_to` takes what there is", r"\[3\.\] left: 0"),
        ("10 must stay behind to choose from", r"left: 17\s+.*left: 12\s+the next batch has to wait"),
        ("fills up with zeros", r"\[ 4  8  0  0\]"),
        ("The element with the smallest one comes first", r"1 b'first'\n2 b'second'\n3 b'third'"),
        (
            "can't put in its seventh image",
            r"images +\S+ +5 +6 +1 (.|\n)*put_image +client of worker:0 +images +5 of 5 elements",
        ),
        ("a **deadlock** is a circle of arrows", r"A circle: client of worker:0 \(put_image\) waits"),
        ("**who waits for what**", r"take_label waits to take"),
        ("gets an error instead", r"ended with (CancelledError|OutOfRangeError)"),
        ("Nine, since the trainer holds the tenth", r"8 +Deadlock at .*\n9 +all done"),
        ("even with room for a single pair", r"one queue, room for 1 pair: all done after 2\.0 s"),
    ],
    "07_input": [
        ("which is 0.26 MB", r"feeding +0\.78 MB +0\.78 MB"),
        ("Preloaded ones cross twice in all", r"preloading +0\.26 MB +0\.26 MB"),
        ("reads its own files sends nothing", r"reading +0\.00 MB +0\.00 MB"),
        ("Reading is the *bottleneck*", r"The bottleneck is read/examples_enqueue"),
        ("Four readers are four times as fast", r"1000 examples in 2\.2 ms(.|\n)*1000 examples in 0\.6 ms"),
        ("The GPU waits half the time", r"shuffle_batch_join +1 +20 .* 49% +51%"),
        ("Now training sets the pace", r"The bottleneck is shuffle_batch_join:"),
        ("it is an error that reports which op waits for what", r"nobody is left who helps(.|\n)*0 of 300 elements"),
        (
            "That of examples is empty, and that of names does not even exist",
            r"shuffle_batch/random_shuffle_queue .*0 of 300",
        ),
    ],
}

test_runs_clean_twice_in_one_kernel, test_what_is_said_is_shown, test_it_is_still_said = checks_of(SAID)
