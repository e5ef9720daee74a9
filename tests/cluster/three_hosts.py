"""Three hosts in network namespaces, each with a Dask worker: `python -m tests.cluster.three_hosts FOLDER SCENARIO`.

To be run by `unshare --net --mount --pid --fork --kill-child --mount-proc`, in whose namespaces everything happens:
what it makes ends with it. A bridge joins the hosts, 10.77.0.11 to 10.77.0.13, to this program's own host, 10.77.0.1,
where the scheduler is.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import distributed

import dtflab as tf
from dtflab.base import errors

HOME = "10.77.0.1"
HOSTS = {f"h{number}": f"10.77.0.{10 + number}" for number in (1, 2, 3)}


def make_network() -> None:
    """The bridge and a namespace per host."""
    lines = [
        "mount -t tmpfs none /run", "mkdir /run/netns", "ip link set lo up", "ip link add br0 type bridge",
        f"ip addr add {HOME}/24 dev br0", "ip link set br0 up",
    ]  # fmt: skip
    for name, address in HOSTS.items():
        lines += [
            f"ip netns add {name}", f"ip link add v{name} type veth peer name eth0 netns {name}",
            f"ip link set v{name} master br0 up", f"ip -n {name} addr add {address}/24 dev eth0",
            f"ip -n {name} link set eth0 up", f"ip -n {name} link set lo up",
        ]  # fmt: skip
    for line in lines:
        subprocess.run(line.split(), check=True)


class Hosts:
    """A scheduler here, and a worker on each host. A host `without` the folder has an empty one in its place."""

    def __init__(self, folder: Path, security: tuple[str, ...] = (), without: str = "") -> None:
        self._security = security
        self._stack = contextlib.ExitStack()
        here = f"{'tls' if security else 'tcp'}://{HOME}"
        self.scheduler = f"{here}:8786"
        self._start("scheduler", "--host", here, "--port", "8786", "--no-dashboard")
        self.workers = {}
        for name, address in HOSTS.items():
            cover = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs none "{folder}" && exec "$@"', "sh")
            self.workers[name] = self._start(
                "worker", self.scheduler, "--host", address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
                before=("ip", "netns", "exec", name, *(cover if name == without else ())),
            )  # fmt: skip

    def _start(self, what: str, *arguments: str, before: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        command = (*before, sys.executable, "-m", "distributed.cli.dask_" + what, *arguments, *self._security)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def lose(self, name: str) -> None:
        """Kill a host's worker, and return when it is gone: until then it may still answer."""
        self.workers[name].kill()
        self.workers[name].wait()

    def __enter__(self) -> Hosts:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()


def client_of(hosts: Hosts, **options: Any) -> distributed.Client:
    client = distributed.Client(hosts.scheduler, timeout=60, **options)
    client.wait_for_workers(3, timeout=120)
    return client


def refused(make: Callable[[], object]) -> str:
    try:
        make()
    except errors.OpError as error:
        return error.message
    return "not refused"


def placed(cluster: tf.Cluster) -> dict[str, str]:
    return {task.name: task.address for task in cluster.tasks}


def train(cluster: tf.Cluster, folder: Path, lose: Callable[[], object]) -> dict[str, Any]:
    """Count to ten in a variable of the ps, which is lost at step 5; a checkpoint each step."""
    with tf.device("/job:ps/task:0"):
        step = tf.train.get_or_create_global_step()
        count = tf.assign_add(step, 1)
    seen = []
    with tf.train.MonitoredTrainingSession(
        master=cluster.target, checkpoint_dir=str(folder), save_checkpoint_steps=1, save_checkpoint_secs=None,
        save_summaries_steps=None, log_step_count_steps=None,
        hooks=[tf.train.StopAtStepHook(last_step=10)],
    ) as session:  # fmt: skip
        while not session.should_stop():
            seen.append(int(session.run(count)))
            if seen[-1] == 5 and 5 not in seen[:-1]:
                lose()
    return {"seen": seen}


def in_plain_text(folder: Path) -> dict[str, Any]:
    """Two clusters that are refused, then a training that loses the host of its ps."""
    found: dict[str, Any] = {}
    with Hosts(folder, without="h3") as hosts, client_of(hosts) as client:
        found["exposed"] = refused(lambda: tf.Cluster(engine="dask", client=client, ps=1, worker=2))
        found["without the folder"] = refused(
            lambda: tf.Cluster(engine="dask", client=client, ps=1, worker=2, insecure=True, allow_files=folder)
        )
    with Hosts(folder) as hosts, client_of(hosts) as client:
        options: dict[str, Any] = {"client": client, "insecure": True, "allow_files": folder}
        with tf.Cluster(engine="dask", ps=1, worker=2, **options) as cluster:
            found["placed"] = placed(cluster)
            host = cluster.task("ps").address.rpartition(":")[0]
            name = next(name for name, address in HOSTS.items() if address == host)
            found |= train(cluster, folder, lambda: hosts.lose(name))
            found["placed then"] = placed(cluster)
    return found


def with_tls(folder: Path) -> dict[str, Any]:
    """A step on three hosts, with TLS for Dask and for the tasks."""
    from dtflab.cluster import certs

    certs.make(folder / "certs", [HOME, *HOSTS.values()])
    server, client_folder = folder / "certs" / "server", folder / "certs" / "client"
    files = {"ca-file": "ca.pem", "cert": "certificate.pem", "key": "key.pem"}
    options = tuple(part for name, file in files.items() for part in (f"--tls-{name}", str(server / file)))
    security = distributed.Security(
        require_encryption=True, tls_ca_file=str(client_folder / "ca.pem"),
        tls_client_cert=str(client_folder / "certificate.pem"), tls_client_key=str(client_folder / "key.pem"),
    )  # fmt: skip
    credentials = tf.Credentials.load(server)
    with (
        Hosts(folder, options) as hosts,
        client_of(hosts, security=security) as client,
        tf.Cluster(engine="dask", client=client, ps=1, worker=2, credentials=credentials) as cluster,
        tf.Session(cluster.target) as session,
    ):
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(3.0)
        with tf.device("/job:worker/task:1"):
            w = v * 2.0
        session.run(v.initializer)
        plain = tf.Session(f"grpc://{cluster.task('ps').address}", credentials=tf.Credentials(token="x" * 16))
        return {"value": float(session.run(w)), "placed": placed(cluster), "plain": refused(plain.list_devices)}


if __name__ == "__main__":
    os.environ["DTFLAB_TIMEOUT_CONNECT"] = "5"
    make_network()
    print(json.dumps({"plain": in_plain_text, "tls": with_tls}[sys.argv[2]](Path(sys.argv[1]))))
