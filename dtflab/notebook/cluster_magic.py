"""`%dtf_cluster`: starts a cluster, attaches to one, shows it, restarts it, stops it.

Rule: what can be said in an option is an argument of `Cluster`; a wrong line ends with a sentence and an example.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class

from dtflab.base.credentials import Credentials
from dtflab.cluster.cluster import Cluster
from dtflab.cluster.engines import ENGINES
from dtflab.notebook import hardware
from dtflab.notebook.arguments import Values, argument, check, magic, options, words
from dtflab.notebook.panel import show_now

_EXAMPLE = hardware.EXAMPLE
_ATTACH = "%dtf_cluster attach localhost:2222"
_NAME, _OF_ATTACH = ("--name",), ("--name", "--credentials")
_VERBS = {"start": None, "attach": _OF_ATTACH, "status": _NAME, "stop": _NAME, "restart": _NAME}
_ENGINES = [name for name in ENGINES if name != "attached"]  # which is the verb attach


def _one_of(option: str) -> Values:
    return lambda _: [f'"{each}"' if " " in each else each for each in hardware.choices()[option]]


@magics_class
class ClusterMagics(Magics):
    """The magic cluster, and the clusters that it has started or attached to, by name."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.clusters: dict[str, Cluster] = {}

    @magic
    @argument(
        "verb",
        nargs="?",
        default="start",
        help="start (default), attach, status, stop or restart",
        values=lambda _: _VERBS,
    )
    @argument("addresses", nargs="*", help="attach: addresses of running tasks, such as host:2222,host:2223")
    @argument("--ps", type=int, default=0, help="number of parameter servers")
    @argument("--worker", type=int, default=0, help="number of workers")
    @argument("--job", action="append", default=[], metavar="NAME=N", help="any other job, NAME=N; may be repeated")
    @argument("--engine", default="inprocess", help="inprocess, process, tensorflow or dask", values=lambda _: _ENGINES)
    @argument("--listen", action="store_true", help="bind loopback ports, so that other processes can join")
    @argument("--no-token", action="store_true", help="process: accept any program on this machine, also TensorFlow's")
    @argument("--credentials", metavar="FOLDER", help="start, attach: where TLS certificates, a token or both are")
    @argument("--client", help="dask: the name of your distributed.Client (default: Dask's default client)")
    @argument("--allow-files", metavar="DIR", help="dask: a folder that all hosts share; tasks open no other files")
    @argument("--insecure", action="store_true", help="dask: let tasks on other machines listen without encryption")
    @argument(
        "--name",
        default="cluster",
        help="the cluster's name; a new cluster with this name replaces it",
        values=lambda magics: list(magics.clusters),
    )
    @argument("--gpus", type=int, help="simulated GPUs of each host; a ps sees none, other tasks see all of them")
    @argument("--gpu", help="their model, for example K40 (default: GRID K520)", values=_one_of("--gpu"))
    @argument("--gpu-memory", help="memory of each, for example 4GiB (default: what the model has)")
    @argument(
        "--visible", action="append", default=[], metavar="JOB=GPUS", help="GPUs that a job sees, as ps=0; repeat it"
    )
    @argument("--clock", default="real", help="real, or virtual: that of the hardware below", values=_one_of("--clock"))
    @argument("--network", help="virtual: the network between hosts (default: 10Gb/s)", values=_one_of("--network"))
    @argument("--bus", help="virtual: the bus between a host's GPUs (default: pcie3)", values=_one_of("--bus"))
    @argument("--cpu", help="virtual: the CPUs of each host, a name from the catalogue")
    @argument("--racks", type=int, help="virtual: the number of racks for the hosts (default: 1)")
    @argument("--stragglers", values=_one_of("--stragglers"), help="virtual: random slowness, such as lognormal(0.3)")
    @argument("--seed", type=int, help="virtual: runs with the same seed are identical")
    @line_magic
    def dtf_cluster(self, line: str) -> Any:
        """Start a cluster, or attach to one, and show it; start, attach, status and restart return the Cluster.

        %dtf_cluster --ps 1 --worker 2               one parameter server and two workers in this process
        cluster = %dtf_cluster --ps 1 --worker 2     the same, kept for cluster.target, cluster.run(…)
        %dtf_cluster --worker 4 --engine process     four workers, each in an operating system process of its own
        %dtf_cluster --worker 4 --engine tensorflow  the same with TensorFlow's own servers
        %dtf_cluster --worker 4 --engine dask        on the workers of the Dask cluster of your distributed.Client
        %dtf_cluster --ps 1 --worker 2 --gpus 2 --gpu K40 --gpu-memory 4GiB    two simulated GPUs for each worker
        %dtf_cluster --ps 1 --worker 50 --clock virtual --gpu K40 --network 10Gb/s --seed 1    in virtual time
        %dtf_cluster attach host:2222                running tasks; one address of dtflab's tasks is enough
        %dtf_cluster status                          show it again
        %dtf_cluster restart                         the same tasks at the same addresses, without their variables
        %dtf_cluster stop                            end all its tasks; attached ones keep running
        """
        args = words(self.dtf_cluster, line)
        check("The verb", args.verb, _VERBS, _EXAMPLE)
        check("--engine", args.engine, _ENGINES, f"{_EXAMPLE} --engine process")
        if args.addresses and args.verb != "attach":
            raise UsageError(f"{args.verb} takes no addresses: {' '.join(args.addresses)!r}. For example: {_EXAMPLE}")
        cluster = getattr(self, f"_{args.verb}")(args)
        if cluster is not None:
            show_now(cluster)
        return cluster

    def _attach(self, args: Any) -> Cluster:
        addresses = [address for text in args.addresses for address in text.split(",") if address]
        if not addresses:
            raise UsageError(f"attach takes addresses of tasks: where do they run? For example: {_ATTACH}")
        known = options(self.dtf_cluster).items()
        given = sorted(name for name, action in known if getattr(args, action.dest) != action.default)
        if others := [name for name in given if name not in _OF_ATTACH]:
            raise UsageError(
                f"attach takes addresses of tasks, --name and --credentials, not {', '.join(others)}: these tasks "
                f"have been started, and are what they are. For example: {_ATTACH}"
            )
        attached = Cluster(addresses, engine="attached", name=args.name, credentials=_credentials(args))
        if args.name in self.clusters:
            self._stop(args)
        self.clusters[args.name] = attached
        return attached

    def _start(self, args: Any) -> Cluster:
        jobs = {"ps": args.ps, "worker": args.worker}
        for item in args.job:
            job, separator, count = item.partition("=")
            if not separator or not count.isdigit():
                raise UsageError(f"--job must be NAME=N, not {item!r}. For example: --job chief=1")
            jobs[job] = int(count)
        if fewer := next((job for job, count in jobs.items() if count < 0), None):
            raise UsageError(f"--{fewer} must be 0 or more tasks, not {jobs[fewer]}. For example: {_EXAMPLE}")
        if not any(jobs.values()):
            raise UsageError(f"A cluster needs at least one task. For example: {_EXAMPLE}")
        machines = hardware.options(args, [job for job, count in jobs.items() if count])
        credentials, token = _credentials(args), None if args.no_token else "new"
        client = self._dask_client(args.client) if args.engine == "dask" else args.client
        if args.name in self.clusters:
            self.clusters.pop(args.name).stop()
        self.clusters[args.name] = Cluster(
            engine=args.engine, listen=args.listen, name=args.name, credentials=credentials, token=token, client=client,
            allow_files=args.allow_files, insecure=args.insecure, **machines, **jobs,
        )  # fmt: skip
        return self.clusters[args.name]

    def _dask_client(self, name: str | None) -> Any:
        """The notebook's variable of that name, or the client that Dask has as its default; None without Dask."""
        if name is not None:
            return self.shell.user_ns.get(name) if self.shell is not None else None
        if importlib.util.find_spec("distributed") is None:
            return None
        try:
            return importlib.import_module("distributed").default_client()
        except ValueError:
            raise UsageError("--engine dask needs a Dask client: client = distributed.Client() makes one.") from None

    def _status(self, args: Any) -> Cluster:
        return cluster_named(self, args.name)

    def _stop(self, args: Any) -> None:
        cluster = clusters_by_name(self).get(args.name)
        if cluster is None:
            print(f"No cluster named {args.name!r} is running: nothing to stop.")
            return
        self.clusters.pop(args.name, None)
        cluster.stop()

    def _restart(self, args: Any) -> Cluster:
        cluster = self._status(args)
        cluster.restart()
        return cluster


def clusters_by_name(magics: Any) -> dict[str, Cluster]:
    """The clusters of %dtf_cluster, and running ones that have a name in Python; Tab offers them behind --name."""
    lines = getattr(magics, "lines", magics)
    named = ((name, it) for name, it in lines.shell.user_ns.items() if isinstance(it, Cluster) and name[0] != "_")
    return {**{name: it for name, it in named if not it.is_stopped}, **lines.clusters}


NAME = argument(
    "--name", default="cluster", help="the cluster's name, or the Python variable that has it", values=clusters_by_name
)


def cluster_named(magics: Any, name: str, option: str = "--name") -> Cluster:
    """The cluster of that name, of `%dtf_cluster` or of Python; UsageError that names those there are."""
    every = clusters_by_name(magics)
    if name in every:
        return every[name]
    names = " or ".join(f"{option} {each}" for each in sorted(every))
    cure = f"Use {names}." if names else "Start one: %dtf_cluster --ps 1 --worker 2"
    raise UsageError(f"No cluster named {name!r} is running. {cure}")


def _credentials(args: Any) -> Credentials | None:
    return Credentials.load(args.credentials) if args.credentials else None
