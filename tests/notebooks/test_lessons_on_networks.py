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
        ("by one image of 400 only", r"net7 +0\.938\n(.*\n)*together +0\.940"),
        ("two of them were equally good", r"0\.925 +number 1\n(.*\n)*.*0\.925 +number 2"),
        ("The whole ensemble is as slow as its slowest member", r"all must answer: +1\d\d\.\d ms per query"),
        ("Queries are answered again, by two members", r"20 ms for an answer: +2\d\.\d ms per query, 2\.0 members"),
        ("One replica is too slow", r"replicas .*\n1 +1\d\d\.\d ms"),
        ("With three, hardly any query has to wait", r"replicas .*\n(.*\n)*3 +6\.7 ms"),
        ("A quarter of it", r"6 devices in 606 ms\n(.*\n)+worker:5 GPU:0 +25%"),
        ("No query is lost", r"300 queries, 300 answers"),
        ("its memory is free", r"v1 +(\S+) +0\nv2 +\1 +\1\n"),
    ],
    "09_model_parallelism": [
        ("Both are slower", r"1 +1\.17 ms\n2 +1\.25 ms\n4 +1\.43 ms"),
        (
            "Two GPUs are faster now, though not twice as fast",
            r"not at all +1\.17 ms .*\n(.*\n)through the layers +0\.91 ms",
        ),
        ("Between two machines it does not, even over a fast network", r"two machines, 100Gb/s +1\.60 ms"),
        ("Both GPUs compute nearly all of the time", r"through the images .* 4%"),
        ("Still, they are not twice as fast", r"not at all +2\.13 ms .*\nthrough the images +1\.63 ms"),
        ("two GPUs are slower than one", r"not at all +2\.13 ms(.|\n)*carelessly +2\.37 ms"),
        ("the bubble is (K − 1) / (M + K − 1)", r"\n4 +43% +43% +50%"),
        ("with still more it gets worse", r"\n16 +16% .* 1\.86 ms\n(.*\n)?64 .* 2\.15 ms"),
        ("Backward takes about twice as long as forward", r"bubble \d\d%"),
        (
            "Now even a slow cut is better than none",
            r"GPUs: 1 +out of memory\n+\w+: OOM when allocating(.|\n)*GPUs: 2 +a step takes",
        ),
    ],
    "10_data_parallelism": [
        ("Three times as many updates in the same time", r"60 updates in 1\.00 s"),
        ("Why 0.1 and not 0", r"\nsynchronous .* 0\.1\n"),
        ("makes by far the most updates, and comes last", r"async +20,272 +never\n"),
        ("waiting for the first\n14 of 16 is best", r"sync +702 +after 0\.89 s\nsync \+ 2 spares +949 +after 0\.71 s"),
        ("Most gradients are some 15 updates old", r"14\.6 steps old on average"),
        ("Alone, each update takes x nearer to 0", r"one +0\.0000 "),
        ("they throw x out of the valley", r"eight +22 "),
        ("Smaller steps help most", r"mean loss in the second half(.*\n)+lower rate +[01]\."),
        ("a tenth more updates", r"vary, all +1,108 .*\n.*vary, a spare +1,222 "),
        ("it makes three times as many updates as waiting for all", r"tail, all +169 .*\n.*tail, a spare +505 "),
        ("it is ahead of the workers that wait for all", r"momentum, all +\S+ +0\.93\n.*momentum, async +\S+ +0\.65\n"),
        ("Dropping\nwastes a third of the work", r"drop +\S+ +109 +4\.1 +\d\.\d +67\n"),
        ("so it can be above 4 with “drop”", r"drop +\S+ +\d+ +4\.\d +[0-3]\.\d "),
    ],
}

test_runs_clean_twice_in_one_kernel, test_what_is_said_is_shown, test_it_is_still_said = checks_of(SAID)
