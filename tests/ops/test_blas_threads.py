"""How many threads BLAS uses is decided in one place, whoever asks."""

from __future__ import annotations

import threadpoolctl

from dtflab.machine.clock import REAL
from dtflab.ops.blas import BLAS


def blas_threads():
    return {lib["num_threads"] for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "blas"}


def seen_inside(all_cores):
    BLAS.enter(all_cores)
    try:
        return blas_threads()
    finally:
        BLAS.leave()


def test_every_thread_can_set_it():
    seen = []
    clients = [REAL.spawn(lambda: seen.append((seen_inside(False), seen_inside(True)))) for _ in range(3)]
    for client in clients:
        client.join()
    assert seen_inside(False) == {1}
    assert seen == [({1}, {BLAS.cores})] * 3


def test_the_users_own_number_comes_back_after_a_step():
    with BLAS:
        assert seen_inside(False) == {1}
    assert blas_threads() == {BLAS.cores}


def test_it_comes_back_after_a_kernel_that_outlives_its_step():
    with BLAS:
        BLAS.enter(False)
    assert blas_threads() == {1}
    BLAS.leave()
    assert blas_threads() == {BLAS.cores}
