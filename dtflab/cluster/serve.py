"""`dtflab serve`: one task of a cluster as a program of its own, on this machine or another.

    dtflab serve --cluster spec.json --job ps --task 0

Stands for `core/distributed_runtime/rpc/grpc_tensorflow_server.cc`, TensorFlow's own server program.

Rule: it serves until Ctrl-C, SIGTERM or the end of its terminal, and is then stopped as any `Server`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import sys
from typing import Any

from dtflab.base import errors
from dtflab.base.credentials import PLAIN, Credentials, own
from dtflab.cluster.addresses import check_address
from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.cluster.server import Server
from dtflab.machine.console import show
from dtflab.machine.hosts import is_loopback


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "--cluster", required=True, metavar="SPEC", help='a JSON file, or JSON: {"ps": ["host:2222"], "worker": [...]}'
    )
    parser.add_argument("--job", required=True, help="the job of the cluster that this task belongs to")
    parser.add_argument("--task", type=int, default=0, metavar="N", help="its number in the job (default: 0)")
    parser.add_argument("--bind", metavar="HOST:PORT", help="listen there instead of at the task's own address")
    parser.add_argument("--insecure", action="store_true", help="listen beyond this machine, in plain text")
    parser.add_argument("--credentials", metavar="FOLDER", help="speak TLS, with the certificates of `dtflab certs`")
    parser.add_argument("--allow-files", metavar="FOLDER", help="let steps open the files in it, and no others")


def command(
    spec: ClusterSpec, job: str, index: int, credentials: Credentials, insecure: bool, allow_files: Any = None
) -> str:
    """The line that starts a task of a cluster in a shell of its host."""
    parts = ["dtflab", "serve", "--cluster", json.dumps(spec.as_dict()), "--job", job, "--task", str(index)]
    parts += ["--insecure"] * insecure
    parts += ["--credentials", "FOLDER"] * (credentials != PLAIN)
    parts += [] if allow_files is None else ["--allow-files", os.fspath(allow_files)]
    return shlex.join(parts)


def main(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Serve until the program is asked to end; a wrong option ends it with a sentence and status 2."""
    try:
        server = _started(options)
    except NotADirectoryError as error:  # --allow-files
        parser.error(f"{error.strerror}: {error.filename}")
    except (errors.OpError, ValueError, TypeError) as error:
        parser.error(getattr(error, "message", str(error)))
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, _as_ctrl_c)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            show(f"{server.task.name} serves at {server.task.address}; Ctrl-C ends it.", flush=True)
            server.join()
    finally:
        server.stop()


def _started(options: argparse.Namespace) -> Server:
    if options.bind is not None:
        check_address(options.bind)
    credentials = own(Credentials.load(options.credentials) if options.credentials else None)
    server = Server(
        _spec(options.cluster), options.job, options.task, start=False, bind=options.bind, insecure=options.insecure,
        credentials=credentials, allow_files=options.allow_files,
    )  # fmt: skip
    address = options.bind or server.task.address
    if not (options.insecure or credentials.is_tls or is_loopback(address)):
        raise ValueError(
            f"{address} is beyond this machine: add --credentials FOLDER (dtflab certs makes one) to listen there with "
            "TLS, or --insecure for plain text."
        )
    server.start()
    return server


def _as_ctrl_c(*signal: Any) -> None:
    raise KeyboardInterrupt


def _spec(text: str) -> dict[str, Any]:
    """The jobs of the cluster; ValueError says what is wrong with the file or the text."""
    where = "--cluster"
    if not text.lstrip().startswith("{"):
        where, path = text, text
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            raise ValueError(f"--cluster {path}: {error.strerror or error}. Give a JSON file, or JSON.") from None
    try:
        spec = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{where} is not JSON: {error}") from None
    if not isinstance(spec, dict):
        raise ValueError(f'{where}: a cluster is jobs with their addresses, as {{"ps": ["host:2222"]}}, not {spec!r}.')
    return spec
