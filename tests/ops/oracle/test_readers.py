"""Readers on TensorFlow and on dtflab: the same files, the same calls, records, counts and errors compared."""

from __future__ import annotations

import gzip
import re
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dtflab
from dtflab.graph.apply_op import apply_op
from tests.oracle.graph_defs import both
from tests.oracle.input_files import write_records, write_texts
from tests.oracle.programs import Programs

program = Programs()
TEXTS = {
    "a": b"1\n2\n3\n4\n5\n", "b": b"6\n7\n8", "empty": b"", "ends": b"a\r\nb\rc\r\n\r\n\nd\r", "line": b"\n",
    "fixed": b"HEAD" + b"".join(b"rec%02d" % i for i in range(4)) + b"FT", "short": b"HEAD" + b"re",
}  # fmt: skip


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_texts(TEXTS)
    Path("fixed.z").write_bytes(zlib.compress(TEXTS["fixed"]))
    Path("fixed.gz").write_bytes(gzip.compress(TEXTS["fixed"]))
    write_records()


@program.each()
def test_same_answer(run, files):
    theirs, ours = both(run)
    assert ours == theirs


class Reading:
    """A reader over a closed queue of files, and its ops in a session."""

    def __init__(self, tf: Any, make: Callable[[], Any], names: list[str], close: bool = True) -> None:
        self.tf = tf
        with tf.Graph().as_default() as graph:
            queue = tf.FIFOQueue(99, [tf.string], shapes=[()])
            self.reader = make()
            self.count = tf.placeholder(tf.int64, [])
            self.text = tf.placeholder(tf.string, [])
            self.ops = {
                "read": self.reader.read(queue), "up_to": self.reader.read_up_to(queue, self.count),
                "records": self.reader.num_records_produced(), "files": self.reader.num_work_units_completed(),
                "state": self.reader.serialize_state(), "restore": self.reader.restore_state(self.text),
                "reset": self.reader.reset(), "left": queue.size(),
            }  # fmt: skip
            start = [queue.enqueue_many([names])] if names else []
            end = [queue.close()] if close else []
        self.session = tf.Session(graph=graph)
        for op in start + end:
            self.session.run(op)

    def __call__(self, op: str, *, count: int = 0, text: bytes = b"") -> Any:
        feed = {self.count: count} if op == "up_to" else {self.text: text} if op == "restore" else None
        try:
            value = self.session.run(self.ops[op], feed)
        except self.tf.errors.OpError as error:
            return type(error).__name__, said(error)
        return [v.tolist() if hasattr(v, "tolist") else v for v in value] if isinstance(value, tuple | list) else value

    def all(self, op: str = "read", **how: Any) -> list[Any]:
        """The records until the first error, and the counts after it."""
        seen = []
        while not seen or not isinstance(seen[-1], tuple):
            seen.append(self(op, **how))
        return [*seen, self("records"), self("files")]


def said(error: Any) -> str:
    """The failure, without its place in the graph."""
    found = re.search(
        r"[\w.]+; No such file or directory|closed and has insufficient elements|corrupted record at \d+|"
        r"truncated record at \d+|Reader \w+State|Could not parse state for \w+ '\w+': \w*|inflate\(\) failed|"
        r"reached end of file|\w+_bytes must be >= 0 not -\d|Expected[\w\s-]+component[\w ]*|"
        r"Expected to dequeue[\w -]+|"
        r"Unexpected negative value|Inconsistent work started vs. finished",
        error.message.replace("EOF reached", "reached end of file"),  # TensorFlow's for a compressed file
    )
    return found[0] if found else error.message


@program
def lines(tf):
    seen = []
    for skip in (None, 0, 1, 2, 9):
        for names in (["a", "b"], ["empty", "b", "empty"], ["ends"], ["line", "a"], ["no"], ["empty"]):
            seen.append(Reading(tf, lambda skip=skip: tf.TextLineReader(skip_header_lines=skip), names).all())
    return seen


@program
def lines_many_at_a_time(tf):
    seen = []
    for count in (1, 2, 3, 5, 7, 100):
        for skip in (0, 1):
            make = lambda skip=skip: tf.TextLineReader(skip_header_lines=skip)  # noqa: E731
            for names in (["a", "b"], ["ends", "empty", "line", "a"], ["a", "no", "b"]):
                seen.append(Reading(tf, make, names).all("up_to", count=count))
    none = Reading(tf, tf.TextLineReader, ["a"])
    return [seen, none("up_to"), none("records"), none("left")]


@program
def errors_do_not_end_a_reader(tf):
    reading = Reading(tf, tf.TextLineReader, ["no", "b", "no", "a"])
    steps = [(reading("read"), reading("records"), reading("files")) for _ in range(6)]
    reading = Reading(tf, tf.WholeFileReader, ["no", "b"])
    return steps, [(reading("read"), reading("records")) for _ in range(4)]


@program
def fixed_length_records(tf):
    sizes = {"header_bytes": 4, "footer_bytes": 2}
    options = [
        sizes, {"header_bytes": 4}, {}, {**sizes, "hop_bytes": 0}, {**sizes, "hop_bytes": 2},
        {**sizes, "hop_bytes": 10}, {"header_bytes": 100}, {"header_bytes": -1}, {"footer_bytes": -1},
        {"hop_bytes": -1}, {"footer_bytes": 30},
    ]  # fmt: skip
    seen = []
    for option in options:
        for encoding, names in ((None, ["fixed", "fixed"]), ("ZLIB", ["fixed.z"]), ("GZIP", ["fixed.gz"])):
            make = lambda o=option, e=encoding: tf.FixedLengthRecordReader(5, **o, encoding=e)  # noqa: E731
            seen.append(Reading(tf, make, names).all())
            seen.append(Reading(tf, make, names).all("up_to", count=3))
    plain = lambda: tf.FixedLengthRecordReader(5, **sizes, encoding="GZIP")  # noqa: E731
    return (
        seen,
        Reading(tf, plain, ["fixed"]).all(),
        Reading(tf, lambda: tf.FixedLengthRecordReader(9), ["short"]).all(),
    )


@program
def records(tf):
    seen = []
    for kind, names in (("", ["r", "r"]), ("GZIP", ["r.gz"]), ("ZLIB", ["r.z"])):
        make = lambda k=kind: tf.TFRecordReader(options=tf.python_io.TFRecordOptions(k))  # noqa: E731
        seen += [Reading(tf, make, names).all(), Reading(tf, make, names).all("up_to", count=2)]
    for name in ("r.bad", "r.cut", "r.gz", "fixed"):
        reading = Reading(tf, tf.TFRecordReader, [name, "r"])
        seen.append([(reading("read"), reading("records"), reading("files")) for _ in range(5)])
    return seen


@program
def whole_files_and_names(tf):
    seen = []
    for make, names in ((tf.WholeFileReader, ["a", "empty", "b"]), (tf.IdentityReader, ["x", "", "y"])):
        seen += [Reading(tf, make, names).all(), Reading(tf, make, names).all("up_to", count=2)]
        with tf.Graph().as_default():
            seen.append((make().supports_serialize, tf.TextLineReader().supports_serialize))
    return seen


@program
def state(tf):
    seen = []
    for make in (tf.WholeFileReader, tf.IdentityReader):
        reading = Reading(tf, make, ["a", "b", "empty", "a"])
        seen += [reading("state"), reading("read")]
        saved = reading("state")
        seen += [saved, reading("read"), reading("state"), reading("restore", text=saved), reading("records")]
        seen += [reading("read"), reading("state"), reading("reset"), reading("records"), reading("state")]
        for text in (b"junk", b"", saved[:-1], b"\x08\x02\x10\x01", b"\x10\x01", b"\x18\xff" + b"\xff" * 8 + b"\x01"):
            seen.append((reading("restore", text=text), reading("records"), reading("files")))
    for make in (tf.TextLineReader, tf.TFRecordReader, lambda: tf.FixedLengthRecordReader(1)):
        reading = Reading(tf, make, ["r"])
        seen += [reading("state"), reading("restore", text=b"")]
    return seen


@program
def reset_in_the_middle_of_a_file(tf):
    reading = Reading(tf, tf.TextLineReader, ["a", "b"])
    seen = [reading("read"), reading("read"), reading("reset"), reading("records"), reading("read"), reading("records")]
    return seen, reading.all()


@program
def queues_that_will_not_do(tf):
    seen = []
    for types, element in (([tf.int32], [1]), ([tf.string] * 2, ["a", "b"]), ([tf.string], [["a", "b"]]),
                           ([tf.string], [["a"]])):  # fmt: skip
        with tf.Graph().as_default(), tf.Session() as session:
            queue = tf.FIFOQueue(9, types)
            key, _ = tf.TextLineReader().read(queue)
            session.run(queue.enqueue(element))
            try:
                seen.append(session.run(key))
            except tf.errors.OpError as error:
                seen.append((type(error).__name__, said(error).strip()))
    return seen


@program
def graph(tf):
    queue = tf.FIFOQueue(9, [tf.string], shapes=[()], name="names")
    readers = [
        tf.TextLineReader(name="lines"), tf.TextLineReader(skip_header_lines=3), tf.WholeFileReader(),
        tf.IdentityReader(), tf.TFRecordReader(options=tf.python_io.TFRecordOptions("ZLIB")),
        tf.FixedLengthRecordReader(3, header_bytes=1, encoding="GZIP"),
    ]  # fmt: skip
    for reader in readers:
        for made in (reader.read(queue), reader.read_up_to(queue, 4), reader.read(queue.queue_ref, name="here")):
            assert [str(t.shape) for t in made] in (["()", "()"], ["(?,)", "(?,)"])
        reader.num_records_produced()
        reader.num_work_units_completed(name="done")
        reader.serialize_state()
        reader.restore_state("state")
        reader.reset()
    with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
        readers[0].read_up_to(queue, [1, 2])
    for state in ([], ["a", "b"]):
        with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
            readers[2].restore_state(state)
    with pytest.raises(AttributeError, match="queue_ref"):
        readers[0].read(5)
    nodes = tf.get_default_graph().as_graph_def().node
    return [(n.name, n.op, list(n.input), sorted((k, str(v)) for k, v in n.attr.items())) for n in nodes]


@program
def handles_of_the_old_family(tf):
    """Graphs that TensorFlow made before it had resources; its Python makes them no longer."""
    definition = tf.GraphDef()
    attrs = 'attr { key: "component_types" value { list { type: DT_STRING } } }'
    users = "NumRecordsProduced NumWorkUnitsCompleted SerializeState Reset".split()
    text = f"""
        node {{ name: "queue" op: "FIFOQueue" {attrs} }}
        node {{ name: "file" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_STRING }} }} }}
        node {{ name: "put" op: "QueueEnqueue" input: "queue" input: "file"
                attr {{ key: "Tcomponents" value {{ list {{ type: DT_STRING }} }} }} }}
        node {{ name: "n" op: "Const" attr {{ key: "dtype" value {{ type: DT_INT64 }} }}
                attr {{ key: "value" value {{ tensor {{ dtype: DT_INT64 int64_val: 2 tensor_shape {{}} }} }} }} }}"""
    kinds = "TextLineReader TFRecordReader WholeFileReader IdentityReader".split()
    for kind in kinds:
        text += f"""
            node {{ name: "{kind}" op: "{kind}" }}
            node {{ name: "{kind}/read" op: "ReaderRead" input: "{kind}" input: "queue" }}
            node {{ name: "{kind}/up_to" op: "ReaderReadUpTo" input: "{kind}" input: "queue" input: "n" }}
            node {{ name: "{kind}/RestoreState" op: "ReaderRestoreState" input: "{kind}" input: "file" }}"""
        for user in users:
            text += f'\nnode {{ name: "{kind}/{user}" op: "Reader{user}" input: "{kind}" }}'
    parse(text, definition)
    tf.import_graph_def(definition, name="")
    seen: list[Any] = []
    with tf.Session() as session:
        for kind in kinds:
            session.run("put", {"file:0": "r" if kind.startswith("TF") else "a"})
            seen += session.run([f"{kind}/read:0", f"{kind}/read:1"])
            if kind not in ("WholeFileReader", "IdentityReader"):
                seen += [value.tolist() for value in session.run([f"{kind}/up_to:0", f"{kind}/up_to:1"])]
                for fetch in (f"{kind}/SerializeState:0", f"{kind}/RestoreState"):
                    with pytest.raises(tf.errors.UnimplementedError):
                        session.run(fetch, {"file:0": ""})
            else:
                saved = session.run(f"{kind}/SerializeState:0")
                seen += [saved, session.run(f"{kind}/RestoreState", {"file:0": saved})]
            seen += session.run([f"{kind}/NumRecordsProduced:0", f"{kind}/NumWorkUnitsCompleted:0"])
            session.run(f"{kind}/Reset")
            seen += session.run([f"{kind}/NumRecordsProduced:0"])
        seen.append([str(session.graph.get_tensor_by_name(f"{kind}:0").shape) for kind in kinds])
    return seen


def test_fixed_length_records_of_the_old_family(files):
    """TensorFlow's own kernel asks for an attribute that this op does not have."""
    parts = {"record_bytes": 5, "header_bytes": 4, "footer_bytes": 2}
    with dtflab.Graph().as_default(), dtflab.Session() as session:
        queue = apply_op("FIFOQueue", component_types=[dtflab.string])
        reader = apply_op("FixedLengthRecordReader", **parts)
        read = apply_op("ReaderRead", reader_handle=reader, queue_handle=queue)
        session.run(apply_op("QueueEnqueue", handle=queue, components=["fixed"]))
        assert [session.run(read) for _ in range(2)] == [(b"fixed:0", b"rec00"), (b"fixed:1", b"rec01")]


def parse(text: str, message: Any) -> None:
    from google.protobuf import text_format

    text_format.Parse(text, message)


@program
def several_reads_of_one_reader(tf):
    """In one step and in several threads: every record once."""
    queue = tf.FIFOQueue(9, [tf.string], shapes=[()])
    reader = tf.TextLineReader()
    reads = [reader.read(queue) for _ in range(4)]
    put, close = queue.enqueue_many([["a", "b"] * 4]), queue.close()
    seen: list[bytes] = []
    with tf.Session() as session:
        session.run(put)
        together = session.run([value for _, value in reads])
        session.run(close)

        def run(fetch: Any) -> None:
            try:
                while True:
                    seen.append(session.run(fetch))
            except tf.errors.OutOfRangeError:
                return

        threads = [threading.Thread(target=run, args=(value,)) for _, value in reads]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        return sorted(together), sorted([*seen, *together]), session.run(reader.num_records_produced())


@program
def position_in_two_sessions_of_a_server(tf):
    """The queue and its container outlive a session, the place in the file does not."""
    server = tf.train.Server.create_local_server()
    queue = tf.FIFOQueue(9, [tf.string], shapes=[()], shared_name="names")
    key, _ = tf.TextLineReader().read(queue)
    put = queue.enqueue_many([["a", "b"]])
    with tf.Session(server.target) as session:
        session.run(put)
        seen = [session.run(key), session.run(key)]
    with tf.Session(server.target) as session:
        seen += [session.run(key), session.run(queue.size())]
    if hasattr(server, "stop"):
        server.stop()
    return seen


@program
def shared_names(tf):
    """A reader with a name is one, no matter which session names it; in another container it is another."""
    seen = []
    definition = tf.GraphDef()
    nodes = ""
    for name, attrs in {
        "one": 'attr { key: "shared_name" value { s: "shared" } }',
        "two": 'attr { key: "shared_name" value { s: "shared" } }',
        "other": 'attr { key: "shared_name" value { s: "shared" } } attr { key: "container" value { s: "elsewhere" } }',
    }.items():
        nodes += f"""
            node {{ name: "{name}" op: "IdentityReaderV2" {attrs} }}
            node {{ name: "{name}/read" op: "ReaderReadV2" input: "{name}" input: "queue" }}
            node {{ name: "{name}/records" op: "ReaderNumRecordsProducedV2" input: "{name}" }}"""
    nodes += """
        node { name: "queue" op: "FIFOQueueV2" attr { key: "component_types" value { list { type: DT_STRING } } }
               attr { key: "shared_name" value { s: "names" } } }
        node { name: "file" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } }
        node { name: "put" op: "QueueEnqueueV2" input: "queue" input: "file"
               attr { key: "Tcomponents" value { list { type: DT_STRING } } } }"""
    parse(nodes, definition)
    tf.import_graph_def(definition, name="")
    server = tf.train.Server.create_local_server()
    for _ in range(2):
        with tf.Session(server.target) as session:
            for name in ("one", "two", "other", "one"):
                session.run("put", {"file:0": name})
                seen.append(session.run([f"{name}/read:0", f"{name}/records:0"])[0])
            seen.append(session.run([f"{name}/records:0" for name in ("one", "two", "other")]))
    tf.Session.reset(server.target, ["elsewhere"])
    with tf.Session(server.target) as session:
        seen.append(session.run([f"{name}/records:0" for name in ("one", "two", "other")]))
    if hasattr(server, "stop"):
        server.stop()
    return seen


@program
def waiting_reads(tf):
    """A read waits for a name; the time-out of its step ends that, and the reader goes on."""
    reading = Reading(tf, tf.TextLineReader, [], close=False)
    with reading.session.graph.as_default():
        put = reading.session.graph.get_operation_by_name("fifo_queue")
        queue = tf.FIFOQueue(9, [tf.string], shapes=[()])
        name = tf.placeholder(tf.string, [])
        enqueue, read = queue.enqueue(name), reading.reader.read(queue)
    seen: list[Any] = [put.type]
    with pytest.raises(tf.errors.DeadlineExceededError):
        reading.session.run(read, options=tf.RunOptions(timeout_in_ms=50))
    got: list[Any] = []
    threads = [threading.Thread(target=lambda: got.append(reading.session.run(read)[1])) for _ in range(3)]
    for thread in threads:
        thread.start()
    reading.session.run(enqueue, {name: "a"})
    for thread in threads:
        thread.join(60)
    return seen, sorted(got), reading("records")


def test_a_read_behind_another_can_be_given_up(files):
    """The first waits for a name, the second for the first; TensorFlow's second would hold a thread and not let go."""
    with dtflab.Graph().as_default(), dtflab.Session() as session:
        queue = dtflab.FIFOQueue(9, [dtflab.string], shapes=[()])
        reader = dtflab.TextLineReader()
        (_, first), (_, second) = reader.read(queue), reader.read(queue)
        enqueue = queue.enqueue("a")
        got: list[Any] = []
        thread = threading.Thread(target=lambda: got.append(session.run(first)))
        thread.start()
        with pytest.raises(dtflab.errors.DeadlineExceededError):
            session.run([first, second], options=dtflab.RunOptions(timeout_in_ms=50))
        session.run(enqueue)
        thread.join(60)
        assert got == [b"1"]
        assert session.run([first, second, reader.num_records_produced()])[2] in (1, 2, 3)
        assert session.run(reader.num_records_produced()) == 3


def test_two_reads_of_a_step_that_runs_out_of_time(files):
    """When the first is given up it is the second's turn, whose step has failed already: it does not wait."""
    with dtflab.Graph().as_default(), dtflab.Session() as session:
        queue = dtflab.FIFOQueue(9, [dtflab.string], shapes=[()])
        reader = dtflab.TextLineReader()
        reads = [reader.read(queue).value for _ in range(3)]
        with pytest.raises(dtflab.errors.DeadlineExceededError):
            session.run(reads, options=dtflab.RunOptions(timeout_in_ms=50))
        session.run(queue.enqueue("a"))
        assert sorted(session.run(reads)) == [b"1", b"2", b"3"]


def test_a_reset_container_ends_what_waits_in_it(files):
    """The queue closes, and the read ends with an error instead of waiting forever."""
    server = dtflab.train.Server.create_local_server()
    with dtflab.Graph().as_default():
        queue = dtflab.FIFOQueue(9, [dtflab.string], shapes=[()], shared_name="names")
        reader, begun = dtflab.TextLineReader(), dtflab.FIFOQueue(1, dtflab.bool)
        has_begun = begun.dequeue()
        with dtflab.control_dependencies([queue.queue_ref.op, reader.reader_ref.op]):
            tell = begun.enqueue(True)
        with dtflab.control_dependencies([tell]):
            _, line = reader.read(queue)
        errors: list[Any] = []

        def read() -> None:
            with pytest.raises(dtflab.errors.OpError) as caught:
                session.run(line)
            errors.append(caught.value)

        with dtflab.Session(server.target) as session:
            thread = threading.Thread(target=read)
            thread.start()
            session.run(has_begun)  # what begins after the reset has a queue of its own, and waits there
            dtflab.Session.reset(server.target)
            thread.join(60)
            assert not thread.is_alive()
    server.stop()
    assert len(errors) == 1
