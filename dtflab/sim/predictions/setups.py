"""Setups: what a point's setup and platform say, in the words of the schema, and what is taken where they say nothing.

Rule: every default stands here, with a source or as assumed. PredictionError gives the reason if a setup can't be read.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence

from dtflab.base.text_table import plural
from dtflab.hardware import catalogue
from dtflab.hardware.parts import Bus, Processor
from dtflab.sim.predictions.layers import TIMES, Layer
from dtflab.sim.predictions.points import Point, PredictionError, Row, number
from dtflab.sim.predictions.recurrent import is_split

NIC = "10Gb/s"  # assumed where a platform's network is unpublished
BATCH = 64.0  # examples per GPU, assumed where a setup has no batch
TOKENS = 2.0 * TIMES  # of a pair of sentences, which is one example
LENGTHS = 0.5  # standard deviation of sentences' lengths over their mean: assumed
UNITS = dict.fromkeys(("image", "img", "example", "sample", "sentence", "pair"), 1.0)
UNITS |= dict.fromkeys(("token", "tok", "word"), TOKENS)
SPARE_PART = 0.1  # of the workers: a source that does not list its numbers of spares tried no more (assumed)
SPARSE_ROWS, ROW_BYTES = 32, 4096.0  # of an embedding per step: assumed
SCALAR_BYTES = 4.0
COPIES = "copies"  # to one device of the host, as tf_cnn_benchmarks does for variables that are "replicated"
NONE = ("no", "none", "false")


def hosts_of(point: Point) -> tuple[int, int]:
    """Hosts, with spare ones, and GPUs of each."""
    setup = point.setup
    required = setup.count("workers_required")
    if required:
        return required + (setup.count("backup") or 0), 1
    nodes = setup.count("nodes") or 0
    of_setup, of_platform = setup.count("gpus_per_node") or 0, point.platform.count("gpus_per_node") or 0
    gpus = setup.count("gpus") or nodes * of_setup or setup.count("workers") or nodes * of_platform
    if not gpus:
        raise PredictionError("the setup says neither 'gpus' nor 'workers' nor both 'nodes' and 'gpus_per_node'")
    hosts = nodes or math.ceil(gpus / (of_setup or of_platform or 1))
    if hosts > gpus:
        raise PredictionError(f"{plural(gpus, 'GPU')} can't be on {hosts} nodes")
    return hosts, math.ceil(gpus / hosts)


def batch_of(point: Point) -> float:
    """Examples per GPU and step; of the whole model, if it is split over GPUs."""
    setup, gpus = point.setup, math.prod(hosts_of(point))
    of_worker, workers = setup.positive("batch_per_worker"), setup.count("workers") or gpus
    whole = setup.positive("global_batch")
    if is_split(setup):
        return setup.positive("batch_per_gpu", "batch") or of_worker or whole or BATCH
    one = setup.positive("batch_per_gpu", "batch") or (of_worker and of_worker * workers / gpus)
    return one or (whole / gpus if whole else BATCH)


def units_of(point: Point) -> float:
    """The units that an example counts for in a rate: a pair of sentences is many tokens.

    Where the point's own unit is not a rate's, a rate that is given counts tokens of a network of words, else images.
    """
    counted = re.fullmatch(r"([a-z]+?)s?\s*(?:/|per)\s*s(?:ec(?:ond)?)?", point.unit.lower())
    if counted and counted[1] in UNITS:
        return UNITS[counted[1]]
    if point.metric == "throughput":
        raise PredictionError(f"a throughput has a unit like 'images/s' or 'tokens/s', not {point.unit!r}")
    return TOKENS if _is_of_words(point) else 1.0


def unevenness_of(point: Point) -> float:
    """By what part the work of one GPU's batch differs from another's: sentences are not equally long, images are."""
    return LENGTHS / math.sqrt(batch_of(point)) if _is_of_words(point) else 0.0


def _is_of_words(point: Point) -> bool:
    return point.model is not None and point.model.number("vocab") is not None


def is_by_grpc(setup: Row) -> bool:
    """Whether servers are TensorFlow's: they are if no framework is named."""
    said = setup.text("framework", "kvstore")
    return not said or bool(re.search(r"tensorflow|\btf", said))


def collective_of(point: Point) -> str:
    """How gradients are summed without servers: "ring", "halving", "tree" or COPIES; "" with servers."""
    update, named = point.setup.text("variable_update"), _spec(point.setup)
    said = point.setup.text("parallelism", "all_reduce", "all_reduce_spec", "framework", "kvstore")
    if update in ("parameter_server", "distributed_replicated"):
        return ""
    if re.search(r"ps[cg]pu|hierarchical", named) or (update == "replicated" and named in NONE):
        _check_copies(point, named)
        return COPIES
    for word in ("tree", "halving"):
        if word in said:
            return word
    meant = re.search(r"reduc|\bring\b|nccl|horovod|gloo|\b(?:mpi|ddp)\b", said)
    return "ring" if update == "replicated" or meant or (named and named not in NONE) else ""


def _check_copies(point: Point, named: str) -> None:
    """PredictionError for copies that the model does not know."""
    hosts, gpus = hosts_of(point)
    bus = bus_of(point)
    links = bus.peer_links if bus.peer_bandwidth else 0
    if named not in (*NONE, "psgpu", "pscpu", "hierarchical_copy"):
        raise PredictionError(f"all_reduce must be none, psgpu, pscpu, hierarchical_copy or nccl, not {named!r}")
    if hosts > 1:
        raise PredictionError(f"all-reduce {named!r} works within one host, but this setup has {hosts} hosts")
    if sums_in_halves(point.setup) and (gpus % 2 or links < gpus // 2):
        raise PredictionError(
            "hierarchical_copy sums the gradients of two halves of the GPUs. Each GPU needs a link to all of its half "
            f"and to one of the other half; {gpus} GPUs on {bus.name!r} do not have these links"
        )


def _spec(setup: Row) -> str:
    """The all-reduce that is named, without a remark; "" if none is."""
    return re.sub(r"\s*\(.*\)", "", setup.text("all_reduce_spec") or setup.text("all_reduce"))


def copies_to_gpus(setup: Row) -> bool:
    """Whether gradients that are copied together go to GPUs; they do if nothing is said."""
    named = _spec(setup)
    return named != "pscpu" and (named not in NONE or "cpu" not in setup.text("local_parameter_device"))


def sums_in_halves(setup: Row) -> bool:
    """Whether they are summed in two steps, along the links between GPUs."""
    return _spec(setup) == "hierarchical_copy"


def sums_on_gpus(setup: Row, hosts: int, gpus: int) -> bool:
    """Whether a host has variables, and adds up its gradients, on its GPUs; one GPU does for itself, not for others."""
    said = setup.text("local_parameter_device", "kvstore")
    return (gpus > 1 or hosts == 1) and ("gpu" in said or "device" in said)


def precision_of(point: Point) -> str:
    """ "fp16" or "fp32": numbers that are multiplied and sent."""
    said = point.setup.text("precision")
    return "fp16" if any(word in said for word in ("amp", "16", "mixed", "half")) else "fp32"


def messages_of(setup: Row) -> int:
    """Messages of one variable each way. Of a sparse one: its rows' numbers to the server, and the rows."""
    return 2 if setup.text("kind").startswith("sparse") else 1


def null_layers(setup: Row, servers: int) -> tuple[Layer, ...]:
    """The variables that a step without computing moves: one on each server."""
    kind = setup.text("kind")
    if kind.startswith("scalar"):
        nbytes = SCALAR_BYTES
    elif kind.startswith("dense"):
        nbytes = setup.need("model_bytes") / servers
    elif kind.startswith("sparse"):
        rows = re.search(r"(\d+) (?![kmg]i?b\b)(?:[^\W\d][\w-]* )*?(?:rows|entries|lookups)", kind)
        nbytes = (int(rows[1]) if rows else SPARSE_ROWS) * ROW_BYTES / servers
    else:
        raise PredictionError(f"null steps of kind {kind!r} are not known: scalar, dense, sparse")
    return tuple(Layer(nbytes, i / servers) for i in range(servers))


def spares_of(point: Point, hosts: int) -> Sequence[int]:
    """Numbers of spares to choose from: those that the setup lists or spans, else up to a tenth of what is needed."""
    said = point.setup.values.get("backup")
    if isinstance(said, str):
        span = re.match(r"\D*(\d+)\s*(?:to|-|–|…|\.\.+)\s*(\d+)", said)  # "0 to 10 of 50"
        said = range(int(span[1]), int(span[2]) + 1) if span else re.findall(r"\d+", said)
    listed = [number(one, "'backup' of the setup") for one in said] if isinstance(said, list | range) else []
    return [int(spares) for spares in listed] or range(math.ceil(SPARE_PART * hosts) + 1)


# ---- what a platform says ----


def nominal_nic(row: Row) -> float:
    """B/s of a host's network card, as it is sold."""
    gigabits = row.positive("nic_gbps")
    return gigabits * 1e9 / 8 if gigabits else catalogue.nic(NIC).bandwidth


def bus_of(point: Point) -> Bus:
    """The platform's bus; PCI Express 3.0 if it says none."""
    try:
        return catalogue.bus(_part(point, "bus") or "pcie3")
    except ValueError as error:
        raise PredictionError(f"{point.platform.what}: {error}") from None


def gpu_of(point: Point) -> Processor:
    """The platform's GPU."""
    name = _part(point, "gpu_name")
    if not name:
        raise PredictionError(f"{point.platform.what} names no GPU, and no rate of one is given")
    try:
        return _processor(name)
    except ValueError as error:
        raise PredictionError(f"{point.platform.what}: {error}") from None


def _part(point: Point, field: str) -> str:
    """The name of a part of the platform, without a remark in brackets; "" if it has none."""
    return re.sub(r"\s*\(.*\)", "", str(point.platform.values.get(field) or ""))


def known_gpu(point: Point) -> Processor | None:
    """The platform's GPU, if it names one that the catalogue has: where a rate is given, nobody has to know it."""
    try:
        return gpu_of(point)
    except PredictionError:
        return None


@functools.cache
def _processor(name: str) -> Processor:
    """Looked up once: names are compared in many spellings."""
    return catalogue.gpu(name)


def chips_of(point: Point) -> int:
    """GPUs on one board; 1 if nobody knows."""
    gpu = known_gpu(point)
    return gpu.chips if gpu else 1


def per_second(unit: str) -> float:
    """How many of the unit are a second."""
    scale = {"s": 1.0, "ms": 1e3, "us": 1e6, "µs": 1e6}
    if unit not in scale:
        raise PredictionError(f"a time is given in {', '.join(scale)}, not {unit!r}")
    return scale[unit]
