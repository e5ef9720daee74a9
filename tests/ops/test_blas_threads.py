"""How many threads BLAS uses is decided in one place, no matter who asks."""

from __future__ import annotations

import threadpoolctl

from dtflab.machine.clock import REAL
from dtflab.ops.blas import BLAS, on_one_thread


def blas_threads():
    return {lib["num_threads"] for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "blas"}


kernel = on_one_thread(blas_threads)


def test_kernels_of_a_step_have_one_thread_whichever_thread_comes_first():
    seen = []
    with BLAS:
        clients = [REAL.spawn(lambda: seen.append(kernel())) for _ in range(3)]
        for client in clients:
            client.join()
        assert kernel() == {1}
    assert seen == [{1}] * 3


def test_the_users_own_number_comes_back_when_no_step_is_left():
    before = blas_threads()
    with BLAS:
        with BLAS:
            assert kernel() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before == {BLAS.cores}


def test_a_kernel_that_outlives_its_step_does_not_take_it_away_again():
    with BLAS:
        kernel()
    assert kernel() == {BLAS.cores} == blas_threads()
