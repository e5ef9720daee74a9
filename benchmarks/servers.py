"""Servers in processes of their own, started by the same program for both libraries.

Run as `python -m benchmarks.servers LIBRARY SPEC JOB INDEX`, this module is one; it ends with its standard input.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

from benchmarks.players import MODULES, load


class ServerProcess:
    """`tf.train.Server(spec, job, index)` in a new process; `wait` until it serves."""

    def __init__(self, module: str, spec: dict[str, list[str]], job: str, index: int) -> None:
        library = next(name for name, known in MODULES.items() if known == module)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.servers", library, json.dumps(spec), job, str(index)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait(self) -> str:
        """The server's target."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def free_addresses(count: int) -> list[str]:
    """Loopback addresses that nobody uses now."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    addresses = [f"localhost:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    return addresses


def echo_server() -> None:
    """A bare grpc-python server that gives back what it gets; prints its port."""
    from concurrent import futures

    import grpc

    class Echo(grpc.GenericRpcHandler):
        def service(self, details: object) -> grpc.RpcMethodHandler:
            return grpc.unary_unary_rpc_method_handler(lambda request, context: request)

    server = grpc.server(futures.ThreadPoolExecutor(4), [Echo()])
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    sys.stdin.read()


def _serve(library: str, spec: str, job: str, index: str) -> None:
    if library == "bare":
        echo_server()
    else:
        server = load(library).train.Server(json.loads(spec), job_name=job, task_index=int(index))
        print(server.target, flush=True)
        sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
