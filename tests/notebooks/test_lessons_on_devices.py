"""Lessons 0 to 3 run clean twice, and show what their texts say."""

from __future__ import annotations

import nbformat
import pytest

from tests.house import ROOT
from tests.notebooks.kernels import execute
from tests.notebooks.lessons import checks_of, text

pytestmark = pytest.mark.timeout(900)

# Of each lesson: what its text says, and what must then stand in the outputs.
SAID = {
    "01_placement": [
        ("`c` ran on `GPU:0`", r"device:GPU:0 +1  c\n"),
        ("`c.device` stays empty", r"c to ''"),
        ("all 20 products with their 21 constants are on the first card", r"GPU:0 has 41 ops, GPU:1 has 0"),
        ("`overridden` is on task 2 and on a CPU", r"overridden  '/job:worker/task:2/device:CPU:0'"),
        ("`other_job` still has task 1", r"other_job +'/job:ps/task:1'"),
        ("why is `weights0/read` on `GPU:0`?", r"GPU:0 +4  weights0, weights0/read"),
        ("Look at the row `VariableV2 int32`", r"VariableV2 int32 +1 op placed here +no kernel +no kernel"),
        ("The *placer* refused", r"Cannot assign a device for operation i"),
        ("`3.0` in place of `3` is often the best one", r"i = 3\.0, on .*GPU:0"),
        ("goes to a device that can run it", r"i +CPU:0 +no GPU kernel(.|\n)*far +GPU:0 +there is no /gpu:7"),
    ],
    "02_gpu_memory": [
        ("`failed to allocate 3.66G … CUDA_ERROR_OUT_OF_MEMORY`", r"failed\s+to\s+allocate\s+3\.66G"),
        ("Each sees two GPUs", r"I see 2 GPUs"),
        ("1,677 MiB of each card", r"1,677 MiB"),
        ("the third program fails at its first tensor", r"failed\s+to\s+allocate\s+1\.60G"),
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
        (
            "doubled until it does not fit",
            r"8,192 rows fit(.|\n)*16,384 rows are too many\n+ResourceExhaustedError: OOM",
        ),
        ("`x` is given away but not needed", r"\*{9,}x+"),
    ],
    "03_parallel_execution": [
        ("`A`, `B` and `C` are ready from the start", r"step, not begun\nready next: A, B, C,"),
        ("the number next to an op is its counter", r"\nF +4\n"),
        ("`D` and `E` both went from 1 to 0", r"1 +A B C +D 1 → 0, E 1 → 0\n"),
        ("two of them have come by the end of the second set", r"2 +D E +F 4 → 2\n3 +F 2 → 0\n"),
        ("yet they wait until `b` has finished", r"1 +a\n2 +b\n3 +x y\n4 +z\n"),
        ("each makes a table of\n16 MiB", r"peak 112 MiB"),
        ("less than a third of the memory", r"peak 32\.0 MiB"),
        ("79 MiB are left for tensors", r"of 79\.09MiB are free"),
        ("a program that fails and one that runs", r"False: it does not fit\n+\w+: OOM(.|\n)*True: \d"),
    ],
}

test_runs_clean_twice_in_one_kernel, test_what_is_said_is_shown, test_it_is_still_said = checks_of(SAID, "00_welcome")


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
