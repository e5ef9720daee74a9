"""A JupyterLab or Notebook 7 of its own for a test: loopback, a free port, fresh settings, nothing left at its end."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
SETTINGS = {
    # The news pop-up would cover outputs; cells outside the window would not be drawn; room below the last cell
    # as high as the window would let the first ones be scrolled out of any window, however high.
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none", "scrollPastEnd": False},
}


class Lab(NamedTuple):
    url: str  # to which the name of a notebook is added
    token: str


@contextlib.contextmanager
def jupyter_lab(folder: Path, work: Path, program: str = "jupyterlab") -> Iterator[Lab]:
    """JupyterLab, or the program `notebook`, serving `folder`, with everything that it writes below `work`."""
    places = {"CONFIG": "config", "DATA": "data", "RUNTIME": "runtime"}
    variables = {f"JUPYTER_{key}_DIR": str(work / place) for key, place in places.items()}
    for plugin, settings in SETTINGS.items():
        path = work / "settings" / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings))
    variables |= {
        "IPYTHONDIR": str(work / "ipython"),
        "JUPYTERLAB_SETTINGS_DIR": str(work / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(work / "workspaces"),
    }
    command = [
        sys.executable,
        "-m",
        program,
        "--no-browser",
        "--ip=127.0.0.1",
        f"--ServerApp.root_dir={folder}",
    ]
    command += ["--allow-root"] if os.getuid() == 0 else []
    log = work / "lab.log"
    with log.open("w") as out:
        server = subprocess.Popen(command, env=os.environ | variables, stdout=out, stderr=out, cwd=folder)
    try:
        url, token = _wait_until_up(server, work / "runtime", log)
        yield Lab(url + {"jupyterlab": "lab/tree/", "notebook": "notebooks/"}[program], token)
    finally:
        server.terminate()
        server.wait(120)
        assert _leftovers(work) == [], "the server has ended, but not what it started"


def _wait_until_up(server: subprocess.Popen[bytes], runtime: Path, log: Path) -> tuple[str, str]:
    """The server chooses a free port itself and writes where it listens into its runtime folder."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and server.poll() is None:
        if (info := runtime / f"jpserver-{server.pid}.json").exists():
            with contextlib.suppress(json.JSONDecodeError):  # half written
                answer = json.loads(info.read_text())
                return answer["url"], answer["token"]
        time.sleep(0.05)
    raise AssertionError(f"{server.args} did not come up:\n{log.read_text()}")


def _leftovers(work: Path) -> list[str]:
    """Processes with this server's runtime folder in their environment: its kernels and their children."""
    mark, deadline = str(work / "runtime").encode(), time.monotonic() + 60
    while True:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)
