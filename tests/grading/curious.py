"""Code of a submission that looks for a secret wherever its process can look, and prints where it finds it."""

from __future__ import annotations

# It knows what it looks for from back to front, so that it does not find itself. What it finds is printed.
LOOKS = """
import gc, inspect, os, sys, types
import dtflab

TO = None  # a file, else the standard output

def report(where, text):
    reversed_text = (text if isinstance(text, str) else text.decode(errors="replace"))[::-1]
    for needle in NEEDLES:
        if needle in reversed_text:
            print("FOUND", where, needle[-4:][::-1], file=TO)

def read(path):
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError:
        return b""

def in_memory():
    report("os.environ", repr(dict(os.environ)))
    report("argv", repr([sys.argv, sys.orig_argv]))
    for thing in gc.get_objects():
        if isinstance(thing, (dict, list, tuple)):
            for one in list(thing.values() if isinstance(thing, dict) else thing):
                if isinstance(one, (str, bytes)):
                    report("gc", one)
        if isinstance(thing, types.FunctionType):
            report("constants", repr(thing.__code__.co_consts))
    for frame in inspect.stack():
        report("frames", repr(list(frame.frame.f_locals.values())))
        try:
            report("source", inspect.getsource(frame.frame))
        except OSError:
            pass
    for module in list(sys.modules.values()):
        report("module", repr([one for one in vars(module).values() if isinstance(one, str)]))

def in_proc(pids):
    for pid in pids:
        for name in ("environ", "cmdline"):
            report(f"proc {name}", read(f"/proc/{pid}/{name}"))
        try:
            fds = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for fd in fds:
            path = f"/proc/{pid}/fd/{fd}"
            if os.path.isfile(path):
                report("fd", read(path))

def ancestors():
    pids = ["self"]
    while pids[-1] != "0":
        stat = read(f"/proc/{pids[-1]}/stat").decode()
        pids.append(stat.rpartition(")")[2].split()[1] if stat else "0")
    return pids[:-1]

def on_disk(*roots):
    for root in roots:
        for folder, _, files in os.walk(root):
            for name in files:
                report("disk", read(os.path.join(folder, name)))
"""


def looking_for(*secrets: str) -> str:
    """The code that defines the search; what it looks for stands in it from back to front."""
    return f"NEEDLES = {[one[::-1] for one in secrets]}\n{LOOKS}"
