"""The files that a server opens for its clients' steps: all that its user may, those of one folder, or none."""

from __future__ import annotations

import ast
import os
import re
from types import SimpleNamespace

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster import inprocess
from dtflab.cluster.addresses import free_addresses
from dtflab.files.bundle_writer import BundleWriter
from dtflab.files.checkpoint_v1 import write_v1
from dtflab.files.tensor_slice import TensorSlice
from tests import house

SECRET = "a,1\nb,2\n"


def fill(folder):
    """A file of each kind that an op reads."""
    folder.mkdir(exist_ok=True)
    (folder / "text").write_text(SECRET)
    with tf.python_io.TFRecordWriter(str(folder / "records")) as writer:
        writer.write(b"secret")
    with BundleWriter(str(folder / "model")) as checkpoint:
        checkpoint.add("v", np.float32(3))
    write_v1(str(folder / "old"), [("v", (), TensorSlice.full(0), np.float32(3))])


@pytest.fixture
def places(tmp_path):
    """The folder that a server may open, one next to it, and one whose name begins like it."""
    found = SimpleNamespace(inside=tmp_path / "in", outside=tmp_path / "out", sibling=tmp_path / "in-2")
    for folder in vars(found).values():
        fill(folder)
    return found


@pytest.fixture
def serve():
    servers = []

    def make(allow_files=None, bind="0.0.0.0:0", name="some.name.invalid:2222", **options):
        options = {"insecure": True, **options} if bind else options
        servers.append(tf.train.Server({"worker": [name]}, bind=bind, allow_files=allow_files, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()


@pytest.fixture
def guarded(serve, places):
    return serve(places.inside)


def over_the_wire(server):
    return f"grpc://127.0.0.1:{server.task.endpoint.port}"


def step(server, make, target=over_the_wire):
    """The value of what `make()` builds, of the last of a list, in a session of another program."""
    with tf.Graph().as_default(), tf.Session(target(server)) as session:
        made = make()
        *first, last = made if isinstance(made, list) else [made]
        for each in first:
            session.run(each)
        return session.run(last)


def refused(server, make, **how):
    with pytest.raises(errors.PermissionDeniedError, match=r"may not be opened") as it:
        step(server, make, **how)
    return it.value


def read_by(reader, path):
    queue = tf.FIFOQueue(1, tf.string)
    return [queue.enqueue(path), reader.read(queue)]


def first_of(dataset):
    return dataset.make_one_shot_iterator().get_next()


def table_of(path):
    lines = tf.lookup.TextFileInitializer(path, tf.string, 0, tf.string, 1, delimiter=",")
    table = tf.lookup.StaticHashTable(lines, "")
    return [tf.tables_initializer(), table.lookup(tf.constant("a"))]


def sampled(path):
    return tf.nn.fixed_unigram_candidate_sampler([[1]], 1, 1, False, 2, vocab_file=path)[0]


def restored(prefix):
    return tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=["v"], shape_and_slices=[""], dtypes=[tf.float32])


def merged(prefix):
    return tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[prefix], destination_prefix=prefix + "-merged")


def saved(prefix):
    return tf.raw_ops.SaveV2(prefix=prefix, tensor_names=["v"], shape_and_slices=[""], tensors=[tf.constant(1.0)])


READS = {
    "ReadFile": ("text", tf.read_file),
    "TextLineReader": ("text", lambda path: read_by(tf.TextLineReader(), path)),
    "WholeFileReader": ("text", lambda path: read_by(tf.WholeFileReader(), path)),
    "FixedLengthRecordReader": ("text", lambda path: read_by(tf.FixedLengthRecordReader(4), path)),
    "TFRecordReader": ("records", lambda path: read_by(tf.TFRecordReader(), path)),
    "TextLineDataset": ("text", lambda path: first_of(tf.data.TextLineDataset(path))),
    "FixedLengthRecordDataset": ("text", lambda path: first_of(tf.data.FixedLengthRecordDataset(path, 4))),
    "TFRecordDataset": ("records", lambda path: first_of(tf.data.TFRecordDataset(path))),
    "a function of a data set": ("text", lambda path: first_of(tf.data.Dataset.from_tensors(path).map(tf.read_file))),
    "ahead": ("text", lambda path: first_of(tf.data.TextLineDataset(path).prefetch(2))),
    "InitializeTableFromTextFileV2": ("text", table_of),
    "FixedUnigramCandidateSampler": ("text", sampled),
    "RestoreV2": ("model", restored),
    "RestoreV2 of V1": ("old", restored),
    "Restore": ("old", lambda path: tf.raw_ops.Restore(file_pattern=path, tensor_name="v", dt=tf.float32)),
    "MergeV2Checkpoints": ("model", merged),
}
WRITES = {
    "WriteFile": lambda path: tf.write_file(path, "x"),
    "SaveV2": saved,
    "Save": lambda path: tf.raw_ops.Save(filename=path, tensor_names=["v"], data=[tf.constant(1.0)]),
    "PrintV2": lambda path: tf.print("x", output_stream=f"file://{path}"),
}
LISTS = {
    "MatchingFiles": tf.matching_files,
    "list_files": lambda pattern: first_of(tf.data.Dataset.list_files(pattern)),
}


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# -- tasks of one cluster -----------------------------------------------------------------------------------------


@pytest.fixture(params=["direct", "wire"])
def behind(request, places):
    """Make a task that other machines reach, and one on loopback, behind it; from one to the other in both ways."""
    servers = []

    def make(allow_files=None, files_behind=None):
        port, there = free_addresses(1)[0].partition(":")[2], free_addresses(1)
        spec = {"worker": [f"some.name.invalid:{port}"], "ps": there}
        front = tf.train.Server(spec, "worker", 0, bind=f"0.0.0.0:{port}", insecure=True, allow_files=allow_files)
        ps = tf.train.Server(spec, "ps", 0, allow_files=files_behind)
        servers.extend([front, ps])
        if request.param == "wire":
            inprocess.withdraw(ps.task.address, ps.task)
        return front, ps

    yield make
    if request.param == "wire":
        for ps in servers[1::2]:
            inprocess.publish(ps.task.address, ps.task)
    for server in servers:
        server.stop()


def on_the_ps(op, path):
    def make():
        with tf.device("/job:ps"):
            return op(str(path))

    return make


@pytest.mark.parametrize("op", ["ReadFile", "TextLineDataset", "RestoreV2", "a function of a data set", "ahead"])
def test_the_limits_of_a_master_go_with_its_steps_to_tasks_on_loopback(behind, places, op):
    front, ps = behind()
    file, make = READS[op]
    error = refused(front, on_the_ps(make, places.outside / file))
    assert "other machines can reach /job:worker/replica:0/task:0" in error.message
    step(ps, on_the_ps(make, places.outside / file))  # a session of its own, on loopback


def test_files_in_the_folder_of_the_master_are_opened_on_loopback(behind, places):
    front, _ = behind(allow_files=places.inside)
    assert step(front, on_the_ps(tf.read_file, places.inside / "text")) == SECRET.encode()
    error = refused(front, on_the_ps(tf.read_file, places.outside / "text"))
    assert f"opens only files in {places.inside}" in error.message


def test_a_task_with_a_folder_of_its_own_opens_that_one(behind, places):
    front, _ = behind(allow_files=places.inside, files_behind=places.outside)
    assert step(front, on_the_ps(tf.read_file, places.outside / "text")) == SECRET.encode()
    refused(front, on_the_ps(tf.read_file, places.inside / "text"))


def test_the_limits_go_with_a_cluster_that_a_session_brings(behind, places):
    front, ps = behind()
    spec = tf.train.ClusterSpec({"other": [f"127.0.0.1:{front.task.endpoint.port}", ps.task.address]})
    config = tf.ConfigProto(cluster_def=spec.as_cluster_def())
    with tf.Graph().as_default(), tf.device("/job:other/task:1"):
        found = tf.read_file(str(places.outside / "text"))
        with tf.Session(over_the_wire(front), config=config) as session, pytest.raises(errors.PermissionDeniedError):
            session.run(found)


# -- each op ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", READS)
def test_a_read(op, serve, places):
    name, make = READS[op]
    before = contents(places.outside)
    error = refused(serve(places.inside), lambda: make(str(places.outside / name)))
    assert str(places.outside / name) in error.message and "[[{{" in error.message  # the path and the op
    assert f"only files in {places.inside}, with which its server was started (allow_files)" in error.message
    step(serve(places.inside, name="second.invalid:1"), lambda: make(str(places.inside / name)))
    assert contents(places.outside) == before


@pytest.mark.parametrize("op", WRITES)
def test_a_write(op, serve, places):
    before = contents(places.outside)
    make = WRITES[op]
    server = serve(places.inside)
    for path in ("new", "text", "folder/new"):
        error = refused(server, lambda path=path: make(str(places.outside / path)))
        assert f"{places.outside / path}" in error.message and "[[{{node" in error.message
    assert contents(places.outside) == before and not (places.outside / "folder").exists()
    known = contents(places.inside)
    step(server, lambda: make(str(places.inside / "new")))
    assert contents(places.inside).keys() - known.keys()


@pytest.mark.parametrize("op", LISTS)
def test_a_list_of_names(op, guarded, places):
    refused(guarded, lambda: LISTS[op](f"{places.outside}/*"))
    found = step(guarded, lambda: LISTS[op](f"{places.inside}/te*"))
    assert np.ravel(found).tolist() == [str(places.inside / "text").encode()]


@pytest.mark.parametrize("op", [*READS, *WRITES, *LISTS])
def test_without_a_folder_a_server_that_others_can_reach_opens_nothing(op, serve, places):
    name, make = READS.get(op) or ("text", {**WRITES, **LISTS}[op])
    server = serve()
    for target in (over_the_wire, lambda server: server.target):  # of another program, and of this one
        error = refused(server, lambda: make(str(places.inside / name)), target=target)
        assert "other machines can reach /job:worker/replica:0/task:0" in error.message
        assert "tf.train.Server(…, allow_files='FOLDER')" in error.message


@pytest.mark.parametrize("op", [*READS, *LISTS])
def test_on_loopback_a_server_opens_what_its_user_may(op, serve, places):
    name, make = READS.get(op) or ("text", LISTS[op])
    server = serve(bind=None, name="localhost:0", insecure=True)  # insecure or not
    step(server, lambda: make(str(places.outside / name)))


# -- ways out of the folder -----------------------------------------------------------------------------------------


WAYS = [
    "{outside}/text", "{inside}/../out/text", "{inside}//..//out//text", "{inside}/./x/../../out/text",
    "file://{outside}/text", "file://{inside}/../out/text", "file:///{outside}/text", "{sibling}/text", "{relative}",
    "{inside}/link", "{inside}/links/text", "{inside}/links/../text", "{inside}/chain", "{inside}/text/../../out/text",
    "/proc/self/cwd/{relative}", "/proc/self/root{outside}/text", "", ".", "/",
]  # fmt: skip


@pytest.mark.parametrize("op", ["ReadFile", "TextLineReader", "TextLineDataset", "WriteFile", "PrintV2"])
@pytest.mark.parametrize("way", WAYS)
def test_a_way_out(way, op, guarded, places):
    (places.inside / "link").symlink_to(places.outside / "text")
    (places.inside / "links").symlink_to(places.outside)
    (places.inside / "chain").symlink_to("links/text")
    path = way.format(**vars(places), relative=os.path.relpath(places.outside / "text"))
    make = WRITES[op] if op in WRITES else READS[op][1]
    refused(guarded, lambda: make(path))
    assert (places.outside / "text").read_text() == SECRET


PATTERNS = [
    "{outside}/*", "{inside}/../*", "{inside}/../out/t*", "file://{outside}/*", "{sibling}/*", "{inside}/links/*",
    "{inside}/link*/*", "{inside}/*/*", "{inside}/link?/text", "{inside}/../out/text", "{inside}/links/text", "*", "/*",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("op", ["MatchingFiles", "list_files", "Restore"])
def test_a_pattern_that_leads_out(pattern, op, guarded, places):
    (places.inside / "links").symlink_to(places.outside)
    make = LISTS[op] if op in LISTS else READS[op][1]
    refused(guarded, lambda: make(pattern.format(**vars(places))))


@pytest.mark.parametrize("pattern", ["{inside}/[.][.]/*", "{inside}/\\../*", "{inside}/*/../../*", "{inside}/?\\./o*"])
def test_no_pattern_matches_the_folder_above(pattern, guarded, places):
    assert step(guarded, lambda: tf.matching_files(pattern.format(**vars(places)))).tolist() == []


@pytest.mark.parametrize("link", ["model.index", "model.data-00000-of-00001", "old"])
def test_a_checkpoint_with_a_file_that_leads_out(link, guarded, places):
    (places.inside / link).unlink()
    (places.inside / link).symlink_to(places.outside / link)
    op = "Restore" if link == "old" else "RestoreV2"
    name, make = READS[op]
    refused(guarded, lambda: make(str(places.inside / name)))


def test_a_save_replaces_a_link_and_not_its_target(guarded, places):
    before = contents(places.outside)
    for name in ("model.index", "model.data-00000-of-00001"):
        (places.inside / name).unlink()
        (places.inside / name).symlink_to(places.outside / name)
    step(guarded, lambda: saved(str(places.inside / "model")))
    assert contents(places.outside) == before and not (places.inside / "model.index").is_symlink()
    assert step(guarded, lambda: restored(str(places.inside / "model"))) == [1.0]


def test_a_link_that_stays_inside_is_followed(guarded, places):
    (places.inside / "link").symlink_to("text")
    (places.inside / "here").symlink_to(places.inside)
    assert step(guarded, lambda: tf.read_file(str(places.inside / "here" / "link"))) == SECRET.encode()


def test_the_folder_itself_may_be_named_by_a_link(serve, places, tmp_path):
    (tmp_path / "named").symlink_to(places.inside)
    server = serve(tmp_path / "named")
    assert step(server, lambda: tf.read_file(str(tmp_path / "named" / "text"))) == SECRET.encode()
    refused(server, lambda: tf.read_file(str(places.outside / "text")))


@pytest.mark.parametrize("op", ["ReadFile", "TextLineReader", "TFRecordDataset", "RestoreV2", "Restore", "PrintV2"])
def test_a_pipe_is_refused_and_not_waited_for(op, guarded, places):
    name = "model.index" if op == "RestoreV2" else "old" if op == "Restore" else "pipe"
    (places.inside / name).unlink(missing_ok=True)
    os.mkfifo(places.inside / name)
    make = WRITES[op] if op in WRITES else READS[op][1]
    path = str(places.inside / name.removesuffix(".index"))
    if op == "PrintV2":  # nobody reads it
        with pytest.raises(errors.NotFoundError, match="pipe; No such device or address"):
            step(guarded, lambda: make(path))
    elif op == "Restore":  # in TensorFlow's words for all that is not a table
        with pytest.raises(errors.DataLossError, match="it is a pipe, a socket or a device, not a file"):
            step(guarded, lambda: make(path))
    else:
        assert "it is a pipe, a socket or a device, not a file" in refused(guarded, lambda: make(path)).message


def test_a_folder_is_not_a_file(guarded, places):
    with pytest.raises(errors.FailedPreconditionError, match="Is a directory"):
        step(guarded, lambda: tf.read_file(str(places.inside)))


@pytest.mark.parametrize("make", [tf.read_file, tf.matching_files, restored, READS["TextLineReader"][1]])
def test_a_zero_byte_is_not_part_of_a_name(make, guarded, places):
    with pytest.raises(errors.InvalidArgumentError, match=r"is not a path: no name of a file has a zero byte"):
        step(guarded, lambda: make(f"{places.inside}/text\0/../../out/text"))


# -- a link that comes between the look and the opening ---------------------------------------------------------------


@pytest.fixture
def swapped(places, monkeypatch):
    """In place of `inside/sub`, a link leads out as soon as the path has been found to be inside."""
    fill(sub := places.inside / "sub")
    realpath = os.path.realpath

    def resolve_and_swap(path):
        found = realpath(path)
        if str(sub) in str(found) and not sub.is_symlink():
            sub.rename(places.inside / "moved")
            sub.symlink_to(places.outside)
        return found

    return lambda: monkeypatch.setattr(os.path, "realpath", resolve_and_swap)


@pytest.mark.parametrize("op", ["ReadFile", "TextLineReader", "TFRecordDataset", "InitializeTableFromTextFileV2"])
def test_a_folder_that_becomes_a_link(op, guarded, places, swapped):
    swapped()
    name, make = READS[op]
    error = refused(guarded, lambda: make(str(places.inside / "sub" / name)))
    assert "a part of it has been replaced meanwhile" in error.message


def test_a_folder_that_becomes_a_link_before_a_write(guarded, places, swapped):
    before = contents(places.outside)
    swapped()
    refused(guarded, lambda: WRITES["PrintV2"](str(places.inside / "sub" / "text")))
    assert contents(places.outside) == before


def test_a_file_that_becomes_a_link(guarded, places, monkeypatch):
    text, realpath = places.inside / "text", os.path.realpath

    def resolve_and_swap(path):
        found = realpath(path)
        text.unlink(missing_ok=True)
        text.symlink_to(places.outside / "text")
        return found

    monkeypatch.setattr(os.path, "realpath", resolve_and_swap)
    refused(guarded, lambda: tf.read_file(str(text)))


def test_where_folders_can_t_be_walked_the_resolved_path_is_opened(guarded, places, monkeypatch):
    monkeypatch.setattr("dtflab.files.env._BENEATH", False)
    assert step(guarded, lambda: tf.read_file(str(places.inside / "text"))) == SECRET.encode()
    refused(guarded, lambda: tf.read_file(str(places.outside / "text")))


# -- whose steps ------------------------------------------------------------------------------------------------------


def test_it_is_the_task_that_decides_not_the_program(guarded, places):
    """A local session and another server of this process open what they did before."""
    path = str(places.outside / "text")
    refused(guarded, lambda: tf.read_file(path), target=lambda server: server.target)
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.read_file(path)) == SECRET.encode()
    with tf.Cluster(worker=1) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as session:
        assert session.run(tf.read_file(path)) == SECRET.encode()


def test_a_client_of_another_task(places):
    """The task that runs the op decides; the master need not be allowed anything."""
    spec = {"ps": ["ps.invalid:1"], "worker": ["worker.invalid:1"]}
    ps = tf.train.Server(spec, "ps", bind="0.0.0.0:0", insecure=True, allow_files=places.inside)
    worker = tf.train.Server(spec, "worker", bind="0.0.0.0:0", insecure=True)
    try:
        with tf.Graph().as_default(), tf.Session(over_the_wire(worker)) as session:
            with tf.device("/job:ps/task:0"):
                there, outside = (tf.read_file(str(path / "text")) for path in (places.inside, places.outside))
            with tf.device("/job:worker/task:0"):
                here = tf.read_file(str(places.inside / "text"))
            assert session.run(there) == SECRET.encode()
            for other in (outside, here):
                with pytest.raises(errors.PermissionDeniedError, match="may not be opened"):
                    session.run(other)
    finally:
        worker.stop()
        ps.stop()


def test_a_saver_and_a_queue_of_names(guarded, places):
    """A whole program: input from a queue of files, training, checkpoints."""
    with tf.Graph().as_default(), tf.Session(over_the_wire(guarded)) as session:
        names = tf.train.string_input_producer([str(places.inside / "text")], num_epochs=1, shuffle=False)
        _, line = tf.TextLineReader().read(names)
        count = tf.Variable(0)
        train = tf.assign_add(count, tf.cast(tf.size(tf.string_split([line], ",")), tf.int32))
        saver = tf.train.Saver()
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        assert [session.run(train), session.run(train)] == [2, 4]
        with pytest.raises(errors.OutOfRangeError):
            session.run(train)
        coord.request_stop()
        coord.join(threads)
        path = saver.save(session, str(places.inside / "run" / "model"), write_meta_graph=False)
        session.run(count.initializer)
        saver.restore(session, path)
        assert session.run(count) == 4
        for other in (places.outside, places.sibling):
            with pytest.raises(errors.PermissionDeniedError, match="allow_files"):
                saver.save(session, str(other / "model"), write_meta_graph=False)
            with pytest.raises((errors.PermissionDeniedError, ValueError)):
                saver.restore(session, str(other / "model"))


# -- which servers ------------------------------------------------------------------------------------------------


def test_on_loopback_a_folder_may_be_asked_for(serve, places):
    server = serve(places.inside, bind=None, name="localhost:0")
    assert step(server, lambda: tf.read_file(str(places.inside / "text"))) == SECRET.encode()
    refused(server, lambda: tf.read_file(str(places.outside / "text")))


@pytest.mark.parametrize("options", [{"bind": None}, {"bind": "127.0.0.1:0", "insecure": False}, {"listen": False}])
def test_a_server_that_only_this_machine_reaches_is_open(options, serve, places):
    server = serve(**options)
    found = step(server, lambda: tf.read_file(str(places.outside / "text")), target=lambda server: server.target)
    assert found == SECRET.encode()


def test_a_server_that_is_started_later_is_guarded_before_it_serves(serve, places):
    server = serve(start=False)
    server.start()
    refused(server, lambda: tf.read_file(str(places.inside / "text")))


@pytest.mark.parametrize("folder", ["{tmp}/missing", "{tmp}/in/text", ""])
def test_the_folder_must_exist(folder, serve, places, tmp_path):
    """An empty text, as of an unset variable, is neither the current folder nor all of them."""
    folder = folder.format(tmp=tmp_path)
    with pytest.raises(
        NotADirectoryError, match=f"allow_files must name an existing folder.*{re.escape(repr(folder))}"
    ):
        serve(folder)


# -- no way around it --------------------------------------------------------------------------------------------------

OPENERS = {"BundleReader", "BundleWriter", "V1Reader", "open_checkpoint", "write_v1", "merge_bundles", "RecordReader",
           "Lines", "FixedLengthRecords", "Records", "WholeFile", "Itself", "pairs_of_file"}  # fmt: skip
TEXT_ONLY = {"os.fsdecode", "os.fsencode", "os.path.dirname", "os.path.basename", "os.path.join", "os.path.abspath"}
NO_PATH = {"os.urandom", "os.getpid", "os.cpu_count", "os.register_at_fork", "os.environ.get"}
AFTER_THE_ENV = {  # their paths come from it
    "os.path.getsize(path)", "os.path.isfile(path)", "os.rmdir(directory)",
    "gfile.makedirs(os.path.dirname(ctx.env.path(path)))",
}  # fmt: skip


def test_ops_open_files_by_their_env_alone():
    """An op that opens a file in another way, or forgets to say whose Env, would be a hole."""
    found = []
    for page in house.sources(house.PACKAGE / "ops"):
        for call in house.calls(page):
            called = house.dotted(call.func)
            of_files = called in ("open", "local", "glob") or called.startswith(("os.", "gfile.", "shutil."))
            if not (of_files or house.called(call) in OPENERS):
                continue
            text = ast.unparse(call)
            by_itself = of_files and called not in TEXT_ONLY | NO_PATH and text not in AFTER_THE_ENV
            if by_itself or (house.called(call) in OPENERS and "env" not in text):
                found.append(f"{page.name}: {text}")
    assert found == []
