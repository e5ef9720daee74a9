"""Lessons 8 to 10 run clean twice, and show what their texts say."""

from __future__ import annotations

import pytest

from tests.notebooks.lessons import checks_of

pytestmark = pytest.mark.timeout(900)

# Of each lesson: what its text says, and what must then stand in the outputs.
SAID = {
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
        ("Most gradients are some 29 updates old", r"28\.2 steps old on average"),
        ("Alone, each update takes x nearer to 0", r"x after 96 updates of one worker: 0\.0000"),
        ("they throw x out of the valley", r"x after 96 updates of eight: 22"),
        ("Smaller steps help most", r"lower rate +mean loss in the second half +[01]\."),
        ("the runs that wait for all finish first", r"vary, all .* after 0\.61 s(.|\n)*vary, spares .* after 0\.70 s"),
        ("nearly twice as many updates as waiting for all", r"tail, all +246 updates(.|\n)*tail, spares +438 updates"),
        (
            "it ends lowest, spares are second, and those who wait for all come last",
            r"async .* 0\.43 at the end(.|\n)*all .* 0\.63 at the end(.|\n)*spares .* 0\.53 at the end",
        ),
        ("Dropping\nwastes a third of the work", r"109 updates +staleness 4\.1, of those used \d\.\d +67 dropped"),
        ("so it can be above 4 with “drop”", r"drop +mean .* staleness 4\.\d, of those used [0-3]\.\d "),
    ],
}

test_runs_clean_twice_in_one_kernel, test_what_is_said_is_shown, test_it_is_still_said = checks_of(SAID)
