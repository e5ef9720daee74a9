"""The text of a lesson agrees with its cells: numbers and names that a reader should look for."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from tests.house import ROOT
from tests.notebooks.kernels import execute

pytestmark = pytest.mark.timeout(900)

# Of each lesson: what its text says, and what must then stand in the outputs.
SAID = {
    "01_placement": [
        ("`c` ran on `GPU:0`", r"device:GPU:0 +1  c\n"),
        ("`c.device` stays empty", r"c to ''"),
        ("all 20 products with their 21 constants are on the first card", r"GPU:0 has 41 ops, GPU:1 has 0"),
        ("`overridden` is on task 2 and on a CPU", r"overridden +'/job:worker/task:2/device:CPU:0'"),
        ("`other_job` still has task 1", r"other_job +'/job:ps/task:1'"),
        ("why is `weights0/read` on `GPU:0`?", r"GPU:0 +4  weights0, weights0/read"),
        ("Look at the row `VariableV2 int32`", r"VariableV2 int32 +1 op placed here +no kernel +no kernel"),
        ("The *placer* refused", r"Cannot assign a device for operation i"),
        ("`3.0` in place of `3` is often the best one", r"i = 3\.0, on .*GPU:0"),
        ("goes to a device that can run it", r"i +on CPU:0: no GPU kernel(.|\n)*far +on GPU:0: there is no /gpu:7"),
    ],
    "02_gpu_memory": [
        ("`failed to allocate 3.66G … CUDA_ERROR_OUT_OF_MEMORY`", r"failed to allocate 3\.66G"),
        ("Each sees two GPUs", r"I see 2 GPUs"),
        ("1,677 MiB of each card", r"1,677 MiB"),
        ("the third program fails at its first tensor", r"failed to allocate 1\.60G"),
        ("The dashed frame is what the third one wanted", r"C is refused: wants 1,677 MiB, 732 MiB are free"),
        (
            "Ann holds 680 MiB, of which her tensors\nused 20 in her last run",
            r"ann\S* of \S+ \(\d+\) +680 MiB +20\.0 MiB",
        ),
        ("Bob's program asked for a large piece, then for smaller and smaller ones", r"512\.00M(.|\n)*302\.33M"),
        ("So her program asked for 512 more", r"takes 512 MiB more, holds 680 MiB(.|\n)*is refused: wants 512 MiB"),
        # On a busy computer ops come in another order, once in 75 steps: 33.5, or 37.3 where a piece is not cut.
        ("with 4,096 rows the peak was\nsome 33 MiB", r"peak 3(3\.[35]|7\.3) MiB"),
        ("“layer1 over MatMul”", r"4\.00 MiB +layer1 over MatMul "),
        ("doubled until it does not fit", r"8,192 rows fit(.|\n)*16,384 rows: OOM"),
        ("`x` is given away but not needed", r"\*{9,}x+"),
    ],
    "03_parallel_execution": [
        ("`A`, `B` and `C` are ready from the start", r"step, not begun\nready next: A, B, C,"),
        ("The number next to an op is its counter", r"\nF +4\n"),
        ("`D` and `E` both went from 1 to 0", r"after set 1\nready next: send A, send B, D, E\n"),
        ("yet they wait until `b` has finished", r"set 1: a\nset 2: b\nset 3: x y\nset 4: z\n"),
        ("each makes a table of\n16 MiB", r"peak 112 MiB"),
        ("less than a third of the memory", r"peak 32\.0 MiB"),
        ("79 MiB are left for tensors", r"of 79\.09MiB are free"),
        ("a program that fails and one that runs", r"False: OOM(.|\n)*True: \d"),
    ],
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
        ("4,000 for the batch on its way", r"the ps: 1,000,000; 8,000 bytes"),
        ("we make it half a second", r"at localhost:1 did not answer within 0\.5 s"),
        ("*CreateSession still waiting*", r"CreateSession still waiting for response from worker: \S+ at localhost:1"),
        ("A session can also say whom it needs", r"\n42\.0\n"),
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
        ("The same name can be used in every room", r"8': 7\.99, .*2': 2\.01"),
        ("C and D share another `x`", r"(?s)^(?=.*C +uses +problem-1/x)(?=.*D +uses +problem-1/x)"),
        ("A adds 1, B adds 10, C adds 100, D adds 1000", r"'': 11\ny of container '': 110\nx of .*'problem-1': 1100"),
        ("closes all sessions of the master that was asked", r"session on worker 0, y: AbortedError"),
        ("`y` is still there", r"session on worker 1, y: 110"),
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
        ("Four. While the loader opens a file", r"3: 13\.3 s\s+capacity +4: 12\.1 s"),
        ("One element is left", r"\[1\. 2\.\] \[3\. 4\.\] left: 1"),
        ("each session has a queue of its own", r"the first session sees 1 element, the second one 0"),
        ("a plain `close` waits for that", r"a plain close waits, too\nended with"),
        ("the element is **lost**", r"Timed out(.|\n)*?left: 0"),
        ("the second one took the horse", r"b'a dog'\s+2\n"),
        ("`OutOfRangeError` is not a failure", r"OutOfRangeError: .*insufficient elements(.|\n)*left: 1"),
        ("`dequeue_up_to` takes what there is", r"\[3\.\] left: 0"),
        ("10 stay for choice", r"left: 17\s+.*left: 12\s+the next batch has to wait"),
        ("fills up with zeros", r"\[ 4  8  0  0\]"),
        ("The element with the smallest one comes first", r"1 b'first'\n2 b'second'\n3 b'third'"),
        (
            "can't put in its seventh image",
            r"put_image waits at FIFOQueue 'images' with 5 of 5(.|\n)*images +\S+ +5 +6 +1 ",
        ),
        ("step 4, of the client of worker 1", r"client /job:worker/task:1 waits for step 4"),
        ("**who waits for what**", r"take_label waits to take"),
        ("gets an error instead", r"ended with (CancelledError|OutOfRangeError)"),
        ("Nine, since the trainer holds the tenth", r"room  8: Deadlock at .*\s+room  9: all done"),
        ("even with room for a single pair", r"one queue, room for 1 pair: all done after 2\.0 s"),
    ],
    "07_input": [
        ("which is 0.26 MB", r"feed +the program sends 0\.78 MB, tasks send 0\.78 MB"),
        ("Preloaded ones cross twice in all", r"preload +the program sends 0\.26 MB, tasks send 0\.26 MB"),
        ("reads its own files sends nothing", r"read +the program sends 0\.00 MB, tasks send 0\.00 MB"),
        ("Reading is the *bottleneck*", r"The bottleneck is read/examples_enqueue"),
        ("Four readers are four times as fast", r"1000 examples in 2\.2 ms(.|\n)*1000 examples in 0\.6 ms"),
        ("The GPU waits half of the time", r"shuffle_batch_join +1 +20 .* 49% +51%"),
        ("Now training sets the pace", r"The bottleneck is shuffle_batch_join:"),
        ("it is an error that reports which op waits for what", r"DeadlockError\nDeadlock at (.|\n)*0 of 300 elements"),
        (
            "That of examples is empty, and that of names does not even exist",
            r"shuffle_batch/random_shuffle_queue .*0 of 300",
        ),
    ],
    "08_many_networks": [
        ("Eight networks in the time of one", r"one network: 1\.83 s; eight networks: 1\.83 s"),
        ("most of the time, all GPUs were busy", r"8 devices in 1\.83 s\n(.*\n)+worker:0 GPU:0 +97%"),
        ("by one image of 400 only", r"net7: 0\.938 of the test images\n(.*\n)*together: 0\.940"),
        ("two of them were equally good", r"0\.925  number 1\n(.*\n)*.*0\.925  number 2"),
        ("The whole ensemble is as slow as its slowest member", r"all must answer: +1\d\d\.\d ms per query"),
        ("Queries are answered again, by two members", r"20 ms for an answer: +2\d\.\d ms per query, 2\.0 members"),
        ("One replica is too slow", r"replicas: 1 +a query takes +1\d\d\.\d ms"),
        ("With three, hardly any query has to wait", r"replicas: 3 +a query takes +6\.7 ms"),
        ("A quarter of it", r"6 devices in 606 ms\n(.*\n)+worker:5 GPU:0 +25%"),
        ("No query is lost", r"300 queries, 300 answers"),
        ("its memory is free", r"before {'net0': \d+, 'v1': (\d+), 'v2': \1}\nafter +{'net0': \d+, 'v2': \1}"),
    ],
    "09_model_parallelism": [
        ("Both are slower", r"one GPU 1\.17 ms +two 1\.25 ms +four 1\.43 ms"),
        ("Two GPUs are faster now, though not twice as fast", r"one GPU 1\.17 ms +two 0\.91 ms"),
        ("Between two machines it does not, even over a fast network", r"two machines, 100Gb/s +1\.60 ms"),
        ("Both GPUs compute nearly all of the time", r"4% of what the layers computed"),
        ("Still, they are not twice as fast", r"one GPU 2\.13 ms +two 1\.63 ms"),
        ("two GPUs are slower than one", r"one GPU 2\.13 ms(.|\n)*carelessly 2\.37 ms"),
        ("the bubble is (K − 1) / (M + K − 1)", r" 4 +43% +43% +50%"),
        ("with still more it gets worse", r"16 +16% .* 1\.86 ms\n(.*\n)? +64 .* 2\.15 ms"),
        ("Backward takes about twice as long as forward", r"bubble \d\d%"),
        ("Now even a slow cut is better than none", r"GPUs: 1\n +OOM when allocating(.|\n)*GPUs: 2 +a step takes"),
    ],
    "10_data_parallelism": [
        ("Three times as many updates in the same time", r"60 updates in 1\.00 s"),
        ("Why 0.1 and not 0", r"synchronous : .* mean staleness 0\.1\n"),
        ("makes by far the most updates, and comes last", r"async +37,771 updates/minute +loss 0\.25 never"),
        ("waiting for the first 27 of\n30 is best", r"sync \+ 3 spares +864 updates/minute +loss 0\.25 after 0\.81 s"),
        ("Most gradients are some 29 updates old", r"28\.2 steps old in the mean"),
        ("Alone, each update takes x nearer to 0", r"x after 96 updates of one worker: 0\.0000"),
        ("they throw x out of the valley", r"x after 96 updates of eight: 22"),
        ("Smaller steps help most", r"lower rate +mean loss in the second half +[01]\."),
        ("those who wait for all are there first", r"vary, all .* after 0\.61 s(.|\n)*vary, spares .* after 0\.70 s"),
        ("nearly twice as many updates as waiting for all", r"tail, all +246 updates(.|\n)*tail, spares +438 updates"),
        (
            "it ends lowest, spares are second, and those who wait for all come last",
            r"async .* 0\.43 at the end(.|\n)*all .* 0\.63 at the end(.|\n)*spares .* 0\.53 at the end",
        ),
        ("Dropping\nwastes a third of the work", r"109 updates +staleness 4\.1, of those used \d\.\d +67 dropped"),
        ("so it can be above 4 with “drop”", r"drop +mean .* staleness 4\.\d, of those used [0-3]\.\d "),
    ],
}


def outputs(lesson: str, folder: Path) -> str:
    """All that the cells of a lesson print and show, run in a folder, as text."""
    notebook = execute(nbformat.read(ROOT / "notebooks" / f"{lesson}.ipynb", as_version=4), folder)
    found = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    # A busy kernel sends a printed line in pieces, at times; what is shown has no line end of its own.
    return "".join(output.get("text") or f"\n{output.get('data', {}).get('text/plain', '')}\n" for output in found)


def text(lesson: str) -> str:
    cells = nbformat.read(ROOT / "notebooks" / f"{lesson}.ipynb", as_version=4).cells
    return "\n".join(cell.source for cell in cells)


@pytest.mark.parametrize("lesson", SAID)
def test_what_is_said_is_shown(lesson, tmp_path):
    shown = outputs(lesson, tmp_path)
    assert [said for said, pattern in SAID[lesson] if not re.search(pattern, shown)] == []


BESIDE = """
import time


def d_beside_e():
    ran = {}  # when ops began and ended, in microseconds
    for device in sess.trace(result).step_stats.dev_stats:
        for node in device.node_stats:
            if node.node_name in "CDE" and device.device.endswith("GPU:1"):
                ran[node.node_name] = (node.all_start_micros, node.all_start_micros + node.all_end_rel_micros)
    both_ready = ran["C"][1] <= min(ran["D"][0], ran["E"][0])
    return both_ready and max(ran["D"][0], ran["E"][0]) < min(ran["D"][1], ran["E"][1])


until = time.monotonic() + 60  # on a busy machine a thread may be late, but not in every step
while not (found := d_beside_e()) and time.monotonic() < until:
    pass
print(found)
"""


def test_d_and_e_run_at_the_same_time_in_lesson_03(tmp_path):
    """Both take as long as `C`: an op of a millisecond would be over before the other thread has begun."""
    notebook = nbformat.read(ROOT / "notebooks" / "03_parallel_execution.ipynb", as_version=4)
    figure = next(i for i, cell in enumerate(notebook.cells) if cell.source.startswith("# Figure 12-5"))
    notebook.cells = [*notebook.cells[: figure + 1], nbformat.v4.new_code_cell(BESIDE)]
    execute(notebook, tmp_path)
    assert "True" in notebook.cells[-1].outputs[0].text
    assert "and run at the same time" in text("03_parallel_execution")


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\((\.\.?/[^)]+)\)", text(path.stem))
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("lesson", SAID)
def test_it_is_still_said(lesson):
    lines = " ".join(text(lesson).split())
    assert [said for said, _ in SAID[lesson] if " ".join(said.split()) not in lines] == []
