"""The simulator asks for no model, platform or number of GPUs by name: a walk over its source."""

from __future__ import annotations

import pytest

from tests.sim.branches import constants_of, names_in, numbers_in, reached

WALKED = reached("dtflab.sim.predictions.predict", "dtflab.sim.predictions.calibrate", "dtflab.sim.estimates.estimate")
TABLES = {"dtflab.hardware.catalogue_cpus", "dtflab.hardware.catalogue_gpus", "dtflab.hardware.catalogue_links"}
NETWORKS = {
    module for module in WALKED if module.startswith("dtflab.sim.models")
}  # a file for each network, by its name
# Words and numbers that decide no prediction's size, each with its place.
WORDS = {
    "dtflab.hardware.costs": {"share"},
    "dtflab.hardware.machines": {"share"},
    "dtflab.sim.engine.cluster_models": {"k40"},  # the card of a cluster that names none
    "dtflab.sim.engine.network_profile": {"k40"},  # an example in an error
    "dtflab.sim.engine.profile_of_table": {"gnmt"},  # a kind of attention
}
NUMBERS = {
    "dtflab.sim.estimates.estimate": {20_000},  # messages of a step, above which layers are taken together
    "dtflab.sim.predictions.layers": {1e6},  # bytes of a MB, and so in the next but one
    "dtflab.sim.predictions.points": {10_000, 1e6},  # more layers or GPUs are a typing mistake
    "dtflab.sim.engine.profile_of_table": {4, 8, 10_000, 1e6},  # bytes of a float; the smallest layer
    "dtflab.sim.predictions.predict": {6e9},  # B/s of gRPC
    "dtflab.sim.engine.network_profile": {3, 100},  # columns of a printed table; when its numbers are rounded
    "dtflab.sim.engine.reductions": {32},  # steps that are simulated at once
    "dtflab.sim.what_ifs.step_graph": {16, 1024},  # answers that are kept; bytes that a session folds
    "dtflab.sim.engine.traffic": {4, 256 << 10},  # halves of items; the smallest part of TensorFlow's partitioner
}


def test_the_walk_reads_what_a_prediction_is_made_of():
    engine = {"layers_of_graph", "network_profile", "profile_of_graph", "profile_of_table", "stragglers"}
    imported = {f"engine.{name}" for name in engine} | {"predictions.points", "predictions.symmetric", "models.seq2seq"}
    assert WALKED.keys() >= {f"dtflab.sim.{name}" for name in imported}


@pytest.mark.parametrize("module", sorted(WALKED))
def test_the_model_asks_for_no_name_and_no_count_of_gpus(module):
    source = WALKED[module].read_text()
    assert module in TABLES | NETWORKS or names_in(source) <= WORDS.get(module, set())
    assert module in NETWORKS or numbers_in(source, constants_of((*WALKED.values(),))) <= NUMBERS.get(module, set())


@pytest.mark.parametrize("code", ["if model == 'vgg16': pass", "if 'vgg' in model: pass", "x = {'inception': 0.9}"])
def test_the_walk_over_the_source_finds_a_name(code):
    assert names_in(code)
    assert names_in("if platform.startswith('dgx'): pass")


@pytest.mark.parametrize(
    "code",
    [
        "if site.gpus > 8: pass",
        "MANY = 50\nif hosts >= MANY: pass",
        "x = {64: 0.9}.get(gpus, 1)",
        "if hosts in (100, 128): pass",
        "if math.log2(gpus) > 4.5: pass",
        "match gpus:\n    case 8 | 16: pass",
        "if params > 1e8: pass",
        "x = 2 if params > float(10**8) else 1",
        "LARGE = float(10**8)\nif params > LARGE: pass",
        "LARGE: float = float('1e8')\nx = nbytes < LARGE",
        "class Limits:\n    large: int = int('100000000')\nx = 1 + (params > Limits.large)",
        "LARGE = pow(10, 8)\nLIMIT = LARGE\nif params > LIMIT: pass",
        "if params > 2 << 26: pass",
        "x = params > math.pow(10, 8)",
        "def seconds(flops, large=10**8):\n    return flops if flops < large else 0",
        "def seconds(flops):\n    large = np.float64(1e8)\n    return np.where(flops > large, 1, 2)",
        "if params - 1e8 > 0: pass",
        "if params // 1e8: pass",
        "x = (1, 2)[min(1, int(params / 10**8))]",
        "x = bisect.bisect([1e8], params)",
        "x = math.copysign(1, params - 1e8)",
        "x = [1 for layer in layers if layer.nbytes >= 10**8]",
        "for large in (1e8, 1e9):\n    while flops > large: pass",
        "if (large := 10**8) < params: pass",
        "x = min(params, 10**8)",
        "if params > points.SIZE: pass",
    ],
)
def test_the_walk_over_the_source_finds_a_threshold(code):
    assert numbers_in(code, {"SIZE": [1e8]})


def test_the_walk_lets_units_and_small_numbers_pass():
    assert not numbers_in("MB = 1e6\nif hosts > 1: x = nbytes / MB * 100 + sizes[3]")
