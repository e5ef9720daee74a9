"""Predictions of published points: the vocabulary, what is never looked at, what a source may not hold, freshness."""

from __future__ import annotations

import copy
import itertools
import json
import math
import random
import re
import tomllib
from dataclasses import fields, replace
from pathlib import Path

import pytest

from dtflab.__main__ import main
from dtflab.sim.engine import fitted
from dtflab.sim.engine.parameters import Parameters
from dtflab.sim.predictions import points, report
from dtflab.sim.predictions.baselines import Scaling, fitted_constant
from dtflab.sim.predictions.calibrate import Search, bounds, calibrate, fitted as fitted_of, flop_efficiency, start
from dtflab.sim.predictions.predict import METRICS, predict, predictor
from dtflab.sim.predictions.scores import by_regime, errors_of, relative_error
from tests.house import PACKAGE, ROOT

KNOWN = points.read()
CONTENT = json.loads(points.CALIBRATION.read_text())


def predictions(content, parameters=None):
    asked = points.parse(content)
    return predict(asked, predictor(asked, parameters or fitted.load(), KNOWN))


def asked(metric, unit="x", given=None, **setup):
    """A file of one point on the shipped platforms and models."""
    content = copy.deepcopy({**CONTENT, "points": []})
    content["points"] = [{"id": "a", "metric": metric, "unit": unit, "setup": setup, "given": given}]
    return content


def value(metric, unit="x", given=None, **setup):
    found = predictions(asked(metric, unit, given, **setup))
    assert found.skipped == {}
    return found.values["a"]


# ---- what is never looked at ----


def test_all_shipped_points_are_predicted():
    found = predictions(CONTENT)
    assert found.skipped == {}
    assert list(found.values) == [point.id for point in KNOWN]
    assert all(math.isfinite(one) and one > 0 for one in found.values.values())


def test_what_was_published_is_never_looked_at():
    expected = predictions(CONTENT).as_json()
    without, scrambled = copy.deepcopy(CONTENT), copy.deepcopy(CONTENT)
    draw = random.Random(3)
    for entry in without["points"]:
        del entry["published"], entry["regime"], entry["source"]
        entry.pop("note", None)
    for entry in scrambled["points"]:
        entry["published"] = draw.choice([draw.uniform(0, 1e6), "nobody knows", None, [1, 2]])
    assert predictions(without).as_json() == predictions(scrambled).as_json() == expected


def test_names_are_only_keys():
    """The same setups under other names of points and models give the same values, if nobody has calibrated them."""
    plain = fitted.Fitted(fitted.load().library)
    text = json.dumps(CONTENT)
    for name in CONTENT["platforms"]:
        text = text.replace(json.dumps(name), json.dumps(f"elsewhere {name}"))
    for name in CONTENT["models"]:
        text = text.replace(json.dumps(name), json.dumps(f"another {name}"))
    renamed = predictions(json.loads(text), plain).values
    expected = predictions(CONTENT, plain).values
    given = [point.id for point in KNOWN if point.given.values or point.model is None]
    assert len(given) > 50
    assert [renamed[one] for one in given] == [expected[one] for one in given]


# ---- the vocabulary ----

K40 = {"platform": "google_k40_shared_2016", "model": "inception_v3", "batch_per_worker": 32, "workers_required": 50}
PASCAL = {"platform": "pascal_25g_roce", "gpus": 128, "nodes": 32, "gpus_per_node": 4, "batch_per_gpu": "64 (recalled)"}


def test_throughput_speedup_and_efficiency_say_the_same():
    setup = {
        "platform": "dgx1_p100",
        "model": "vgg16",
        "gpus": 8,
        "nodes": 1,
        "all_reduce": "nccl",
        "batch_per_gpu": 64,
    }
    rate = value("throughput", "images/s", {"single_gpu": 154}, **setup)
    assert value("speedup", given={"single_gpu": 154}, **setup) == pytest.approx(rate / 154)
    assert value("scaling_efficiency", given={"single_gpu": 154}, **setup) == pytest.approx(rate / 154 / 8)
    assert value("step_time", "ms", {"single_gpu": 154}, **setup) == pytest.approx(1e3 * 8 * 64 / rate)
    assert value("median_step_time", "s", {"single_gpu": 154}, **setup) == pytest.approx(8 * 64 / rate)


def test_efficiency_from_other_than_one_gpu():
    setup = {"platform": "bigbasin_p100_50gbe", "model": "resnet50", "batch_per_gpu": 32, "parallelism": "all-reduce"}
    given = {"single_gpu": 219}
    eight, many = (
        value("throughput", "images/s", given, gpus=gpus, nodes=gpus // 8, gpus_per_node=8, **setup)
        for gpus in (8, 256)
    )
    found = value("scaling_efficiency_vs_8", given=given, gpus=256, nodes=32, gpus_per_node=8, **setup)
    assert found == pytest.approx(many / 32 / eight)
    assert 0.6 < found < 1


@pytest.mark.parametrize(
    ("many", "few"),
    [
        (
            {"workers_required": 50, "backup": 4, "batch_per_worker": 32},
            {"workers_required": 8, "batch_per_worker": 32},
        ),
        ({"workers": 8, "gpus": 64, "nodes": 8, "batch_per_worker": 512}, {"gpus": 8, "nodes": 1, "batch_per_gpu": 64}),
        ({"gpus": 64, "nodes": 8, "global_batch": 2048}, {"gpus": 8, "nodes": 1, "global_batch": 2048}),
    ],
)
def test_efficiency_from_eight_gpus_compares_rates_of_one_gpu(many, few):
    setup = {"platform": "bigbasin_p100_50gbe", "model": "resnet50", "ps_tasks": 8}
    rates = [value("throughput", "images/s", {"single_gpu": 219}, **setup, **one) for one in (many, few)]
    gpus = many.get("workers_required", 64)
    found = value("scaling_efficiency_vs_8", given={"single_gpu": 219}, **setup, **many)
    assert found == pytest.approx(rates[0] / gpus / (rates[1] / 8))
    assert found < 1


def test_spare_workers_help_until_their_gradients_cost_more():
    times = [value("median_step_time", "s", backup=spares, **K40) for spares in range(20)]
    assert value("argmin_backup_step_time", backup="0 to 19", **K40) == times.index(min(times)) > 0
    gains = [value("normalised_speedup", backup=spares, **K40) for spares in range(20)]
    assert gains[3] == pytest.approx(times[0] / times[3] * 50 / 53)
    assert value("argmax_normalised_speedup", **K40) == gains.index(max(gains))
    assert value("argmin_backup_step_time", **{**K40, "backup": "0 to 2"}) == 2
    assert value("argmin_backup_step_time", **{**K40, "backup": [0, 1]}) == 1


def test_synchronous_steps_are_longer_than_asynchronous_ones():
    setup = {key: K40[key] for key in ("platform", "model", "batch_per_worker")}
    few, many = (value("median_sync_step_over_async_step", workers=w, ps_tasks=17, **setup) for w in (25, 100))
    assert 1 < few < many


def test_an_all_reduce_gains_most_on_servers_that_are_hot():
    gains = {model: value("horovod_over_distributed_tf", model=model, **PASCAL) for model in ("inception_v3", "vgg16")}
    assert 1 < gains["inception_v3"] < gains["vgg16"]


def test_each_gpu_is_a_worker_where_a_ring_is_compared_with_servers():
    """Uber's comparison: no host sums up before the network, so servers take four times the bytes."""
    setup = {"model": "resnet101", **PASCAL, "gpus": 64, "nodes": 16}
    gain = value("horovod_over_distributed_tf", **setup)
    fields = {"variable_update": "parameter_server", **setup}
    summed = value("step_time", "s", **fields) / value("step_time", "s", parallelism="ring", **setup)
    assert gain > 1.3 * summed > 1.3
    alone = {"gpus": 16, "nodes": 16, "gpus_per_node": 1}
    one = value("step_time", "s", **{**fields, **alone}) / value(
        "step_time", "s", **{**setup, **alone}, parallelism="ring"
    )
    assert value("horovod_over_distributed_tf", **{**setup, **alone}) == pytest.approx(one), "nothing to sum up"


def test_attention_of_the_top_layer_keeps_split_layers_waiting():
    setup = {"platform": "k40m_server", "model": "nmt_4l_1024", "batch": 128, "gpus": 4, "nodes": 1}
    one = {"parallelism": "model: layers in turns", **setup}
    top, bottom = (
        value("speedup", given={"single_gpu_step": 2.4}, attention=attention, **one)
        for attention in ("standard (queries top layer)", "GNMT (queries bottom layer)")
    )
    assert 1 < top < bottom < 4
    step = value("step_time", "s", {"single_gpu_step": 2.4}, attention="standard (queries top layer)", **one)
    assert step == pytest.approx(2.4 / top)


@pytest.mark.parametrize("batch", [{"batch": 128}, {"global_batch": 128}, {"batch_per_worker": 128, "workers": 1}])
def test_a_split_network_has_one_batch_however_it_is_said(batch):
    setup = {"platform": "k40m_server", "model": "nmt_4l_1024", "gpus": 4, "parallelism": "model: layers in turns"}
    step = value("step_time", "s", {"single_gpu_step": 2.4}, **setup, **batch)
    rate = value("throughput", "sentences/s", {"single_gpu_step": 2.4}, **setup, **batch)
    assert rate == pytest.approx(128 / step)


def test_a_sparse_step_costs_the_same_for_any_size_of_the_table():
    setup = {"platform": "google_shared_2016", "workers": 10, "ps_tasks": 16, "sync": True}
    small, large = (
        value("median_step_time", "ms", kind="sparse: rows of a table", model_bytes=size, **setup)
        for size in (1e9, 16e9)
    )
    scalar, dense = (
        value("median_step_time", "ms", kind=kind, model_bytes=1e9, **setup) for kind in ("scalar 4 B per PS", "dense")
    )
    assert small == large
    assert scalar < small < dense


def test_sentences_of_many_lengths_keep_gpus_waiting_more_in_small_batches():
    setup = {"platform": "dgx1_v100", "model": "gnmt_v2_4l_1024", "gpus": 4, "nodes": 1, "parallelism": "NCCL"}
    small, large = (
        value("scaling_efficiency", "tokens/s", {"single_gpu": 2e3}, batch_per_gpu=batch, **setup) for batch in (8, 800)
    )
    assert small < large


RING = {"platform": "bigbasin_p100_50gbe", "model": "vgg16", "gpus": 32, "nodes": 4, "batch_per_gpu": 32}


@pytest.mark.parametrize(
    "said",
    [
        {"parallelism": "data, multi-ring"},
        {"parallelism": "data (all-reduce)"},
        {"all_reduce": "Gloo"},
        {"all_reduce": "the framework's own"},
        {"framework": "PyTorch DDP"},
        {"kvstore": "nccl"},
        {"variable_update": "replicated", "all_reduce": None},
    ],
)
def test_an_all_reduce_is_understood_in_many_words(said):
    ring, servers = (
        value("speedup", given={"single_gpu": 150}, **RING, **one) for one in ({"parallelism": "ring"}, {})
    )
    assert value("speedup", given={"single_gpu": 150}, **RING, **said) == ring != servers


@pytest.mark.parametrize("said", [{"parallelism": "data, sharing parameter servers"}, {"all_reduce": "none"}])
def test_servers_are_not_taken_for_an_all_reduce(said):
    servers = value("speedup", given={"single_gpu": 150}, **RING)
    assert value("speedup", given={"single_gpu": 150}, **RING, **said) == servers


REPLICATED = {"platform": "dgx1_p100", "model": "vgg16", "gpus": 8, "nodes": 1, "variable_update": "replicated"}


def replicated(spec, **setup):
    return value("throughput", "images/s", {"single_gpu": 154}, **{**REPLICATED, "all_reduce_spec": spec, **setup})


def test_replicated_variables_are_summed_as_the_spec_says():
    """In tf_cnn_benchmarks, psgpu takes one GPU after the other for each variable, as it does if none is named."""
    ring, none, halves, cpu = map(replicated, ("nccl", "none", "hierarchical_copy", "pscpu"))
    assert none < halves < ring < 8 * 154, "one GPU, or one of each half, gets the largest variable of all"
    assert none < cpu < ring
    assert replicated("psgpu") == replicated("none (quoted)") == replicated(None, all_reduce="none") == none
    assert replicated("none", local_parameter_device="cpu") == cpu != replicated("psgpu", local_parameter_device="cpu")
    assert replicated("pscpu", local_parameter_device="gpu") == cpu
    assert replicated("xring") == replicated(None) == ring


@pytest.mark.parametrize("spec", ["none", "psgpu", "pscpu"])
def test_one_gpu_has_nothing_to_sum_up_but_goes_on(spec):
    assert replicated(spec, gpus=1) == pytest.approx(154, rel=1e-5)


@pytest.mark.parametrize(
    ("spec", "setup", "reason"),
    [
        ("psgpu#4", {}, "all_reduce must be none, psgpu, pscpu, hierarchical_copy or nccl, not 'psgpu#4'"),
        ("nccl/pscpu", {}, "not 'nccl/pscpu'"),
        ("pscpu", {"gpus": 16, "nodes": 2}, "within one host, but this setup has 2 hosts"),
        ("hierarchical_copy", {"gpus": 3}, "; 3 GPUs on 'nvlink1' do not have"),
        ("hierarchical_copy", {"platform": "gce_k80x8"}, "; 8 GPUs on 'pcie3-tree' do not have"),
        ("hierarchical_copy", {"platform": "dgx2_v100", "gpus": 16}, "; 16 GPUs on 'nvswitch' do not have"),
    ],
)
def test_sums_that_the_model_does_not_know_are_skipped_with_a_reason(spec, setup, reason):
    found = predictions(
        asked("throughput", "images/s", {"single_gpu": 154}, **{**REPLICATED, "all_reduce_spec": spec, **setup})
    )
    assert found.values == {}
    assert reason in found.skipped["a"]


def test_asynchronous_may_be_said_in_words():
    setup = {**K40, "workers": 50, "workers_required": None}
    rates = [value("throughput", "images/s", sync=sync, **setup) for sync in (False, "asynchronous (quoted)", True)]
    assert rates[0] == rates[1] > rates[2]
    assert value("throughput", "images/s", kvstore="dist_async", framework="TensorFlow", **setup) == rates[0]


@pytest.mark.parametrize("unit", ["tokens/s", "Token / sec", "tok/s", "words per second"])
def test_a_rate_may_be_said_in_other_words(unit):
    setup = {"platform": "dgx1_v100", "model": "gnmt_v2_4l_1024", "gpus": 4, "nodes": 1, "parallelism": "NCCL"}
    rate = value("throughput", unit, {"single_gpu": 2e4}, **setup)
    assert rate == value("throughput", "tokens/s", {"single_gpu": 2e4}, **setup)
    assert 4e4 < rate < 8e4
    images = {**setup, "model": "resnet50"}
    assert value("throughput", "img/sec", {"single_gpu": 300}, **images) == value(
        "throughput", "images/s", {"single_gpu": 300}, **images
    )


def test_a_rate_of_a_network_of_words_counts_tokens_whatever_is_asked():
    """A batch of 128 pairs at 20,000 tokens/s takes 0.3 s, not 6 ms."""
    setup = {"platform": "dgx1_v100", "model": "gnmt_v2_4l_1024", "gpus": 4, "nodes": 1, "parallelism": "NCCL"}
    rate = value("throughput", "tokens/s", {"single_gpu": 2e4}, batch_per_gpu=128, **setup)
    assert value("speedup", "x", {"single_gpu": 2e4}, batch_per_gpu=128, **setup) == pytest.approx(rate / 2e4)


def test_a_batch_of_a_worker_is_shared_by_its_gpus():
    setup = {"platform": "dgx1_p100", "model": "resnet50", "gpus": 8, "nodes": 2}
    one = value("step_time", "s", {"single_gpu": 200}, batch_per_gpu=32, **setup)
    assert value("step_time", "s", {"single_gpu": 200}, batch_per_worker=128, workers=2, **setup) == one
    assert value("step_time", "s", {"single_gpu": 200}, global_batch=256, **setup) == one


def test_nodes_and_their_gpus_are_multiplied():
    setup = {"platform": "dgx1_p100", "model": "resnet50", "nodes": 2, "gpus_per_node": 8}
    rates = [
        value("throughput", "images/s", {"single_gpu": 200}, **{**setup, **more})
        for more in ({}, {"workers": 2}, {"gpus": 16}, {"gpus_per_node": None})
    ]
    assert 200 * 8 < rates[0] == rates[1] == rates[2] == rates[3], "the last from what the platform has"


def test_a_time_may_be_taken_from_another_point_of_the_calibration():
    given = {"calibrate_from": "osdi-backup-t4"}
    found = value("median_step_time", "s", given, backup=4, **K40)
    assert found == pytest.approx(KNOWN.published["osdi-backup-t4"], rel=1e-6)
    assert value("median_step_time", "s", given, backup=0, **K40) > found


def test_a_time_may_be_taken_from_another_point_of_the_same_file():
    """A point computes like the one whose rate is given; the two may name each other, and one may name itself."""
    setup = {"platform": "daint_p100", "model": "resnet50", "batch_per_gpu": 64, "nodes": 1, "ps_tasks": 1}
    content = asked("throughput", "images/s", {"calibrate_from": "b"}, gpus=1, **setup)
    content["points"].append(copy.deepcopy(content["points"][0]) | {"id": "b", "published": 5.0})
    content["points"][1]["given"] = {"single_gpu": 123, "calibrate_from": "a"}
    assert predictions(content).values["a"] == pytest.approx(123, rel=1e-5)
    for given in content["points"]:
        given["given"] = {"calibrate_from": "a"}
    plain = value("throughput", "images/s", gpus=1, **setup)
    assert predictions(content).values == {"a": plain, "b": plain}


@pytest.mark.parametrize("named", ["osdi-backup-t44", "OSDI-backup-t4", 7])
def test_a_point_that_names_a_point_that_is_nowhere_is_skipped(named):
    """The point is not predicted from another rate instead; one whose own rate is given asks no other."""
    found = predictions(asked("median_step_time", "s", {"calibrate_from": named}, **K40))
    assert found.values == {}
    assert f"'calibrate_from' is '{named}': no such point" in found.skipped["a"]
    assert value("median_step_time", "s", {"single_gpu_step": 1.4, "calibrate_from": named}, **K40) > 1.4


def test_a_given_way_back_and_gradients_need_no_model():
    setup = {"platform": "daint_p100", "gpus": 4, "nodes": 4, "ps_tasks": 4}
    given = {"backprop_ms": 300, "gradient_bytes": 4e8}
    fast, slow = (value("step_time", "s", {**given, "gradient_bytes": size}, **setup) for size in (4e4, 4e8))
    assert 0.45 < fast < slow


@pytest.mark.parametrize(
    ("said", "best"),
    [("0 to 2", 2), ("0–2 of 50", 2), ("0, 1", 1), ("up to 2 or 3", 3), ([0, "1 (quoted)"], 1), ("as many as help", 5)],
)
def test_spares_to_choose_from_may_be_said_in_words(said, best):
    assert value("argmin_backup_step_time", **K40, backup=said) == best


def test_who_does_not_say_which_spares_were_tried_tried_no_more_than_a_tenth():
    times = [value("median_step_time", "s", backup=spares, **K40) for spares in range(6)]
    assert value("argmin_backup_step_time", **K40) == times.index(min(times)) == 5, "ten would be quicker still"


@pytest.mark.parametrize("sums", ["cpu", "gpu"])
@pytest.mark.parametrize("model", ["alexnet", "vgg16", "resnet50", "gnmt_v2_4l_1024"])
def test_one_gpu_is_as_fast_as_one_gpu(model, sums):
    """A measured rate has in it what a GPU waits for its own host; all of a step that is not computing, too."""
    setup = {"model": model, "platform": "dgx1_p100", "local_parameter_device": sums, "batch_per_gpu": 64, "nodes": 1}
    rate = value("throughput", "images/s", {"single_gpu": 300}, gpus=1, **setup)
    assert rate == pytest.approx(300, rel=1e-5)
    assert value("speedup", given={"single_gpu": 300}, gpus=1, **setup) == pytest.approx(1)
    assert 1 < value("speedup", given={"single_gpu": 300}, gpus=2, **setup) < 2


def test_one_worker_of_distant_servers_uses_the_network():
    setup = {"platform": "google_k40_shared_2016", "model": "vgg16", "batch_per_worker": 32, "ps_tasks": 17}
    here, there = (value("step_time", "s", workers=1, **setup, **more) for more in ({"nodes": 1}, {}))
    assert here + 0.5 < there < value("step_time", "s", workers=2, **setup)


def test_spare_workers_bring_no_servers_along():
    given = value("median_step_time", "s", backup=10, ps_tasks=50, **K40)
    assert value("median_step_time", "s", backup=10, **K40) == given


def test_a_row_of_a_sparse_step_is_counted_in_words():
    setup = {"platform": "google_shared_2016", "workers": 10, "ps_tasks": 16}
    few, plain, many = (
        value("median_step_time", "ms", kind=f"sparse: {kind}", **setup)
        for kind in ("16 GB table, 32 randomly-chosen rows", "16 GB table", "16 GB table 3200 entries")
    )
    assert few == plain < many


@pytest.mark.parametrize(
    ("setup", "reason"),
    [
        ({"metric": "energy"}, "metric 'energy' is not known"),
        ({"platform": "nowhere"}, "no platform 'nowhere'"),
        ({"model": "none such"}, "no model 'none such'"),
        ({"gpus": None}, "neither 'gpus' nor 'workers'"),
        ({"gpus": 2, "nodes": 3}, "can't be on 3 nodes"),
        ({"gpus": "several"}, "a number was expected"),
        ({"gpus": math.inf}, "a number was expected"),
        ({"gpus": 1e30}, "can't be a count"),
        ({"metric": "scaling_efficiency_vs_8"}, "4 GPUs are fewer than the 8"),
        ({"unit": "K words/s"}, "a unit like 'images/s' or 'tokens/s', not 'K words/s'"),
        ({"unit": "weeks"}, "not 'weeks'"),
        ({"batch_per_gpu": -1}, "no positive 'batch_per_gpu'"),
        ({"unit": "weeks", "metric": "step_time"}, "not 'weeks'"),
        ({"model": None}, "names no model"),
        ({"workers": 2, "gpus": 2, "backup": 2}, "does not exist"),
        ({"kind": "quadratic", "workers": 2}, "'quadratic' are not known"),
        ({"platform": "google_shared_2016"}, "names no GPU"),
        ({"parallelism": "model: layers", "model": "gnmt_4l_1024"}, "needs the given 'single_gpu_step'"),
    ],
)
def test_what_the_model_does_not_know_is_skipped_with_a_reason(setup, reason):
    setup = {"platform": "daint_p100", "model": "resnet50", "gpus": 4, **setup}
    metric, unit = setup.pop("metric", "throughput"), setup.pop("unit", "images/s")
    found = predictions(asked(metric, unit, **setup))
    assert found.values == {}
    assert reason in found.skipped["a"]


def elsewhere(given, **platform):
    """Predictions of one point on the DGX-1 with other parts."""
    content = asked("throughput", "images/s", given, platform="dgx1_p100", model="alexnet_mx", gpus=4)
    content["platforms"]["dgx1_p100"].update(platform)
    return predictions(content, fitted.Fitted())


def test_unknown_parts_are_skipped_with_the_list_of_the_known():
    assert "Unknown bus 'scsi'. Choose one of pcie2" in elsewhere({"single_gpu": 100}, bus="scsi").skipped["a"]
    assert "K40" in elsewhere(None, gpu_name="Voodoo 2").skipped["a"]


def test_parts_may_carry_a_remark():
    plain = elsewhere(None, gpu_name="P100-SXM2", bus="pcie3-tree").values["a"]
    assert elsewhere(None, gpu_name="P100-SXM2 (recalled)", bus="pcie3-tree (2 switches, assumed)").values["a"] == plain


def test_a_given_rate_needs_no_known_gpu():
    assert elsewhere({"single_gpu": 100}, gpu_name="Voodoo 2").values["a"] > 300
    assert elsewhere({"single_gpu": 100}, gpu_name=None).values["a"] > 300


def test_rates_on_gpus_that_nobody_knows_and_rows_that_say_little_disturb_no_other_point():
    content = copy.deepcopy(CONTENT)
    expected = predictions(CONTENT)
    odd = {"platform": "odd", "model": "inception_v3", "gpus": 2}
    content["platforms"]["odd"] = {"gpu_name": "Voodoo 2", "bus": "pcie2"}
    content["models"]["odd"] = {"largest_variable_MB": 3, "gmac_per_image": 1}
    content["points"].append(
        {"id": "odd", "metric": "throughput", "unit": "images/s", "setup": odd, "given": {"single_gpu": 9}}
    )
    found = predictions(content)
    assert {**found.values, "odd": None} == {**expected.values, "odd": None}
    assert 9 < found.values["odd"] < 18.1


@pytest.mark.parametrize("rate", ["unpublished", math.nan, math.inf, -3, 0])
def test_a_point_that_can_t_be_read_is_skipped_and_no_other(rate):
    content, expected = copy.deepcopy(CONTENT), predictions(CONTENT).as_json()["points"]
    content["models"]["odd"] = {"params": "unpublished", "largest_variable_MB": 1, "gmac_per_image": 1}
    setup = {"platform": "dgx1_p100", "model": "resnet50", "gpus": 8}
    odd = {"id": "odd", "metric": "throughput", "unit": "images/s", "setup": setup, "given": {"single_gpu": rate}}
    content["points"].append(odd)
    found = predictions(content)
    assert found.as_json()["points"] == expected
    assert "single_gpu" in found.skipped["odd"]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"params": -4}, "no positive 'params'"),
        ({"params": 3}, "do not describe a network"),
        ({"params": 1e30, "largest_variable_MB": 9.4, "gmac_per_image": 4}, "would need .* layers; at most"),
        ({"layers": 1e30, "units": 1024, "vocab": 32000, "params": 1e8}, "10,000 are the most"),
    ],
)
def test_a_model_that_is_none_is_a_reason_to_skip(row, why):
    content = asked("throughput", "images/s", None, platform="dgx1_p100", model="resnet50", gpus=8)
    content["models"]["resnet50"] = row
    assert re.search(why, predictions(content).skipped["a"])


def test_a_network_of_words_may_be_said_by_its_layers_alone():
    content = asked(
        "throughput", "tokens/s", {"single_gpu": 20000}, platform="dgx1_v100", model="gnmt_v2_4l_1024", gpus=8
    )
    given = predictions(content).values["a"]
    del content["models"]["gnmt_v2_4l_1024"]["params"]  # 160 million; the layers add up to some more
    assert predictions(content).values["a"] == pytest.approx(given, rel=0.05)
    content["models"]["gnmt_v2_4l_1024"] = {}
    reason = "model 'gnmt_v2_4l_1024' has no positive 'fp32_MB' or 'params'"
    assert predictions(content).skipped == {"a": reason}


def test_where_no_rate_of_sixteen_bits_is_known_one_of_float32_is_the_least():
    content = asked("throughput", "images/s", {"single_gpu": 380}, platform="dgx1_v100", model="resnet50", gpus=1)
    content["points"].append(copy.deepcopy(content["points"][0]) | {"id": "fp16", "given": None})
    content["points"][1]["setup"]["precision"] = "fp16"
    found = predictions(content).values
    assert found["fp16"] == pytest.approx(found["a"], rel=1e-3)


def test_grpc_does_not_fill_very_fast_cards_but_collectives_do():
    setup = {"platform": "dgx1_v100", "model": "vgg16", "gpus": 64, "nodes": 8, "batch_per_gpu": 32, "ps_tasks": 8}
    gains = []
    for update in ("parameter_server", "replicated"):
        slow, fast = (copy.deepcopy(asked("scaling_efficiency", "x", {"single_gpu": 200}, **setup)) for _ in range(2))
        for content, gigabits in ((slow, 100), (fast, 800)):
            content["points"][0]["setup"]["variable_update"] = update
            content["platforms"]["dgx1_v100"]["nic_gbps"] = gigabits
        gains.append(predictions(fast).values["a"] / predictions(slow).values["a"])
    assert gains[0] == 1 < gains[1]


def test_only_tensorflow_s_servers_are_bound_by_grpc():
    setup = {"platform": "dgx1_v100", "model": "vgg16", "gpus": 64, "nodes": 8, "batch_per_gpu": 32, "ps_tasks": 8}
    unnamed, tensorflow, short, mxnet = (
        value("scaling_efficiency", "x", {"single_gpu": 200}, **setup, **more)
        for more in ({}, {"framework": "TensorFlow 1.4"}, {"framework": "TF 1.1"}, {"framework": "MXNet"})
    )
    assert unnamed == tensorflow == short < mxnet


def test_a_ring_over_switches_takes_one_link_as_in_a_mesh():
    """Fitted rings of both meshes reach 0.48 and 0.73 of one of their links."""
    setup = {"model": "vgg16", "gpus": 8, "nodes": 1, "gpus_per_node": 8, "all_reduce": "nccl", "batch_per_gpu": 64}
    content = asked("scaling_efficiency", "x", {"single_gpu": 300}, platform="dgx2_v100", **setup)
    through_switches = predictions(content).values["a"]
    content["platforms"]["dgx2_v100"]["bus"] = "nvlink2"
    assert predictions(content).values["a"] == pytest.approx(through_switches)


# ---- the command ----


def test_the_command_writes_predictions_and_shows_errors(tmp_path, capsys):
    out = tmp_path / "out.json"
    main(["sim", "predict", str(points.CALIBRATION), "--json", str(out)])
    written = json.loads(out.read_text())
    assert written == predictions(CONTENT).as_json()
    assert set(written["points"][0]) == {"id", "predicted"}
    shown = capsys.readouterr().out
    assert "daint-inc3-b64-64" in shown
    assert re.search(r"saturated +\d+ +[\d.]+ / [\d.]+ +[\d.]+ / [\d.]+", shown)
    assert re.search(r"points +the model +linear +n\(1 − 0\.\d+·log2 n\) +uniform shards", shown), (
        "no report without baselines"
    )


def test_the_command_names_what_it_skips_and_needs_no_published_values(tmp_path, capsys):
    path = tmp_path / "points.json"
    path.write_text(json.dumps(asked("energy", "J", platform="dgx1_p100", model="resnet50", gpus=4)))
    main(["sim", "predict", str(path), "--json", str(tmp_path / "out.json")])
    assert "skipped a: metric 'energy'" in (shown := capsys.readouterr().out)
    assert "worst" not in shown
    assert list(json.loads((tmp_path / "out.json").read_text())["skipped"]) == ["a"]


def test_the_command_says_in_one_line_what_is_wrong_with_a_file(tmp_path):
    (path := tmp_path / "points.json").write_text("[]")
    with pytest.raises(SystemExit, match=r"dtflab sim predict: .* is not a file of points"):
        main(["sim", "predict", str(path)])


@pytest.mark.parametrize("command", [["calibrate", "--json", "none/a.json"], ["report", "--docs", "none"]])
def test_a_folder_that_is_not_there_is_told_before_the_work(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=f"dtflab sim {command[0]}: there is no folder 'none' to write .*json in"):
        main(["sim", *command])


def test_an_interrupted_search_writes_nothing_and_says_so(tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dtflab.sim.cli.calibrate", interrupted)
    with pytest.raises(SystemExit, match="sim calibrate: interrupted, nothing was written"):
        main(["sim", "calibrate", "--json", str(tmp_path / "out.json")])
    assert list(tmp_path.iterdir()) == []


def test_an_error_to_a_bracket_is_to_its_nearer_end():
    assert relative_error(2.25, (2.0, 2.5)) == 0
    assert relative_error(3.0, (2.0, 2.5)) == pytest.approx(0.2)
    assert relative_error(1.0, (2.0, 2.5)) == pytest.approx(-0.5)


# ---- rules ----


@pytest.mark.parametrize(
    "setup",
    [
        {"variable_update": "parameter_server", "ps_tasks": 8},
        {"variable_update": "parameter_server", "ps_tasks": 8, "sync": False},
        {"all_reduce": "ring"},
        {"all_reduce": "tree"},
        {"all_reduce": "psgpu", "platform": "dgx1_p100", "nodes": 1},
    ],
)
def test_no_size_of_a_model_is_treated_apart(setup):
    """A network of 2% more of everything is never a jump, from a million parameters to ten billion."""
    steps = []
    for size in (1e6 * 1.02**i for i in range(466)):
        given = {"platform": "daint_p100", "model": "resnet50", "gpus": 8, "nodes": 8, "batch_per_gpu": 64, **setup}
        content = asked("step_time", "s", {"single_gpu": 210}, **given)
        row = {"params": size, "largest_variable_MB": size * 4e-7, "gmac_per_image": size * 1e-7}
        content["models"]["resnet50"] = row
        steps.append(predictions(content).values["a"])
    for shorter, longer in itertools.pairwise(steps):
        assert shorter <= longer * 1.0001 and longer <= shorter * 1.021


def test_no_scale_is_treated_apart():
    """A host more is never a jump: a step lasts at least as long, at most by a host's share longer."""
    setup = {"platform": "daint_p100", "model": "resnet50", "ps_tasks": 8, "batch_per_gpu": 64}
    times = [value("step_time", "s", {"single_gpu": 210}, workers=n, nodes=n, **setup) for n in range(2, 140)]
    for n, (time, longer) in enumerate(itertools.pairwise(times), 2):
        assert time <= longer <= time * (n + 1) / n


def test_there_are_at_most_eight_parameters_of_the_library_and_three_of_a_platform():
    assert len(fields(Parameters)) <= 8
    assert set(fitted.PLATFORM) == {"nic_bandwidth", "bus_bandwidth", "latency"}
    written = json.loads(fitted.FILE.read_text())
    assert set(written["library"]) == {one.name for one in fields(Parameters)}
    for entry in [*written["library"].values(), *(one for of in written["platforms"].values() for one in of.values())]:
        assert entry["range"][0] <= entry["value"] <= entry["range"][1]
        assert entry["unit"]


def test_parameters_outside_physics_are_an_error(tmp_path):
    with pytest.raises(ValueError, match="nic_bandwidth of 'p' is 1e\\+15"):
        fitted.Fitted(platforms={"p": {"nic_bandwidth": 1e15}})
    with pytest.raises(ValueError, match="may have nic_bandwidth"):
        fitted.Fitted(platforms={"p": {"charm": 1.0}})
    (path := tmp_path / "parameters.json").write_text('{"library": {"luck": {"value": 1}}, "platforms": {}}')
    with pytest.raises(ValueError, match="holds no parameters"):
        fitted.load(path)


def test_what_is_calibrated_is_data_of_the_package():
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["dtflab"], "everything in it goes into the wheel"
    for path in (points.CALIBRATION, fitted.FILE):
        assert path.is_relative_to(PACKAGE) and path.is_file()
    tracked = {Path(path) for path in (points.CALIBRATION, fitted.FILE)}
    assert tracked <= {path.resolve() for path in (PACKAGE / "sim").rglob("*.json")}


# ---- calibration ----


def test_a_short_search_finds_nothing_better_than_what_is_shipped():
    search = Search(tuple(KNOWN), KNOWN, start(tuple(KNOWN), KNOWN, fitted.load()))
    shipped = search.loss
    for key, value in search.values.items():
        low, high = bounds(key, search)
        for tried in (value * 0.93, value * 1.07):
            if low <= tried <= high and key[1] != "flop_efficiency":
                search.moved({key: tried})
    assert search.loss > 0.97 * shipped, "run dtflab sim calibrate"
    assert fitted.load().library.flop_efficiency == flop_efficiency(KNOWN)


def test_the_search_finds_the_parameters_that_made_the_data():
    """Points made by the model itself, from other parameters than it begins with."""
    platform = "ec2_p2_16xlarge"
    chosen = [point for point in KNOWN if point.platform_name == platform]
    begin = {("", "overlap"): 0.5, (platform, "bus_bandwidth"): 1.0}
    values = {("", "overlap"): 0.2, (platform, "bus_bandwidth"): 0.4}
    model = predictor(KNOWN, fitted_of(values, {platform: chosen[0]}), KNOWN)
    made = replace(KNOWN, published={point.id: model(point) for point in chosen})
    before, (_, found) = Search(chosen, made, begin), calibrate(made, chosen, begin, rounds=1)
    after = Search(chosen, made, found)
    assert after.loss < before.loss / 20
    assert found["", "overlap"] == pytest.approx(0.2, rel=0.2)
    assert found[platform, "bus_bandwidth"] == pytest.approx(0.4, rel=0.1)


# ---- how good it is ----


def mean(errors):
    return sum(errors) / len(errors)


def test_the_model_beats_every_baseline_where_scaling_is_hard():
    model = predictor(KNOWN, fitted.load(), KNOWN)
    own = report.sizes(model, KNOWN)
    laws = [Scaling(model), Scaling(model, fitted_constant(model, KNOWN))]
    for law in laws:
        theirs = report.sizes(law, KNOWN)
        for regime in ("near_linear", "mild", "saturated"):
            assert mean(own[regime]) < mean(theirs[regime]), regime
        assert mean(own["saturated"]) < mean(theirs["saturated"]) / 5


@pytest.mark.parametrize("mechanism", report.MECHANISMS)
def test_each_mechanism_pays_on_its_own_kind_of_points(mechanism):
    belongs = report.MECHANISMS[mechanism][1]
    own = [point.id for point in KNOWN if belongs(point)]
    with_, without = (
        mean([abs(e.relative) for e in errors_of(predict(KNOWN, model), KNOWN) if e.id in own])
        for model in (predictor(KNOWN, fitted.load(), KNOWN, off) for off in ([], [mechanism]))
    )
    assert len(own) >= 3
    assert with_ < without


def test_errors_by_regime_are_counted():
    errors = errors_of(predictions(CONTENT), KNOWN)
    sizes = by_regime(errors)
    assert len(sizes["all"]) == 64 == sum(len(found) for regime, found in sizes.items() if regime != "all")


# ---- the page ----


def test_the_page_and_its_numbers_are_fresh():
    """`dtflab sim report --docs docs` writes them."""
    numbers = json.loads((ROOT / "docs" / "simulator.json").read_text())
    page = (ROOT / "docs" / "simulator.md").read_text()
    assert report.refreshed(page, numbers) == page
    assert numbers["parameters"] == json.loads(fitted.FILE.read_text()) == fitted.load().as_json()
    found = report.sizes(predictor(KNOWN, fitted.load(), KNOWN), KNOWN)
    assert {regime: pytest.approx(sizes, abs=2e-5) for regime, sizes in found.items()} == numbers["model"]
    assert set(numbers["ablations"]) == set(report.MECHANISMS)
    assert set(numbers["held out"]) == set(report.groups(KNOWN))


def test_a_page_without_a_part_is_an_error():
    numbers = json.loads((ROOT / "docs" / "simulator.json").read_text())
    with pytest.raises(ValueError, match="begin parameters"):
        report.refreshed("nothing", numbers)


def test_units_say_what_metrics_measure():
    listed = {"throughput", "speedup", "normalised_speedup", "scaling_efficiency", "step_time", "median_step_time"}
    listed |= {"median_sync_step_over_async_step", "horovod_over_distributed_tf"}
    listed |= {"argmin_backup_step_time", "argmax_normalised_speedup"}
    assert set(METRICS) == listed
