"""Files and records on TensorFlow and on dtflab: the same calls in an empty folder, values and errors compared."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from dtflab.files import tfrecord
from dtflab.python.lib.io import file_io
from tests.oracle.answers import both, module_of
from tests.oracle.programs import Programs

program = Programs()


@program.each()
def test_same_answer(run, tmp_path, monkeypatch):
    def answer(tf):
        folder = tmp_path / tf.__name__
        folder.mkdir()
        monkeypatch.chdir(folder)
        return run(tf)

    theirs, ours = both(answer)
    assert without_files(ours) == theirs


def without_files(answer: Any) -> Any:
    """An answer of dtflab, whose errors about damaged files also name the file, as TensorFlow would give it."""
    if isinstance(answer, list | tuple):
        return type(answer)(map(without_files, answer))
    return re.sub(r"; in file \w+$", "", answer) if isinstance(answer, str) else answer


def tried(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error).__name__, str(getattr(error, "message", error))


def write(tf: Any, name: str, text: Any, mode: str = "w") -> None:
    with tf.gfile.GFile(name, mode) as file:
        file.write(text)


# -- tf.gfile -----------------------------------------------------------------------------------------------------


@program
def reading_and_seeking(tf):
    write(tf, "a", "hello\nworld\n\nend")

    def steps():
        file = tf.gfile.GFile("a")
        seen = [file.read(2), file.tell()]
        for offset, whence in ((1, 0), (1, 1), (-3, 2), (0, 0)):
            file.seek(offset, whence)
            seen += [file.read(3), file.tell(), file.readline(), file.tell()]
        file.seek(position=4)
        return [*seen, file.next(), next(file), list(file), file.read(), file.readline(), file.size()]

    def seek(*args, **kwargs):
        return tf.gfile.GFile("a").seek(*args, **kwargs)

    return [
        steps(), tf.gfile.GFile("a", "rb").read(), tf.gfile.GFile("a", "rb").readlines(), list(tf.gfile.GFile("a")),
        tried(seek), tried(lambda: seek(1, position=2)), tried(lambda: seek(0, 3)), tried(lambda: seek(100)),
        tried(lambda: seek(-1)), tried(lambda: tf.gfile.GFile("a").read(-2)), tf.gfile.GFile("a").read(1000),
        (tf.gfile.Open("a", "rb").name, tf.gfile.FastGFile("a", "rb").mode, tf.gfile.GFile("a").seekable()),
    ]  # fmt: skip


@program
def modes(tf):
    seen = []
    for mode in ("r", "w", "a", "r+", "w+", "a+", "rb", "wb+", "x", "rw", ""):
        write(tf, "f", "one two")

        def use(mode=mode):
            file = tf.gfile.GFile("f", mode)
            done = [tried(lambda: file.write("three")), tried(file.flush), tried(file.tell), tried(file.read)]
            file.close()
            return [*done, tf.gfile.GFile("f").read()]

        seen.append(tried(use))
    return seen


@program
def when_a_file_comes_to_be(tf):
    file = tf.gfile.GFile("f", "w")
    seen = [tf.gfile.Exists("f")]
    for step in (lambda: file.write("abc"), file.flush, file.close, lambda: file.write("de"), file.close, file.close):
        step()
        seen.append((tf.gfile.Exists("f"), file.tell() if len(seen) < 3 else None))
    write(tf, "empty", "")
    write(tf, "bytes", b"\xff")
    write(tf, "text", "é")
    return [seen, tf.gfile.GFile("f").read(), tf.gfile.Exists("empty"), tf.gfile.GFile("bytes", "rb").read(),
            tf.gfile.GFile("text").read(), tried(lambda: tf.gfile.GFile("bytes").read()),
            tried(lambda: write(tf, "n", 5))]  # fmt: skip


@program
def errors_of_files_and_folders(tf):
    g = tf.gfile
    write(tf, "a", "x")
    write(tf, "b", "y")
    g.MakeDirs("d/e/f")
    g.MakeDirs("d/e")
    calls = [
        lambda: g.GFile("no").read(), lambda: g.GFile("no").size(), lambda: write(tf, "no/f", ""),
        lambda: g.GFile("d").read(), lambda: write(tf, "d", ""), lambda: g.Remove("no"), lambda: g.Remove("d"),
        lambda: g.MkDir("d"), lambda: g.MkDir("x/y"), lambda: g.MkDir("a"), lambda: g.MkDir(""),
        lambda: g.MakeDirs("a"), lambda: g.MakeDirs("a/b"), lambda: g.MakeDirs(""),
        lambda: g.Copy("a", "b"), lambda: g.Copy("no", "c"), lambda: g.Copy("a", "d", True),
        lambda: g.Copy("a", "no/c"), lambda: g.Copy("a", "b", overwrite=True), lambda: g.GFile("b").read(),
        lambda: g.Rename("no", "c"), lambda: g.Rename("a", "b"), lambda: g.Rename("a", "no/b"),
        lambda: g.Rename("a", "d", True), lambda: g.Rename("b", "c"), lambda: g.Rename("a", "c", True),
        lambda: g.Rename("d", "dd"), lambda: g.ListDirectory("c"), lambda: g.ListDirectory("no"),
        lambda: g.Stat("no"), lambda: (g.Stat("c").length, g.Stat("c").is_directory, g.Stat("dd").is_directory),
        lambda: g.DeleteRecursively("no"), lambda: g.DeleteRecursively("dd"), lambda: g.DeleteRecursively("c"),
        lambda: g.Exists(None), lambda: [g.Exists(name) for name in ("", ".", "dd", "c", "no")],
        lambda: [g.IsDirectory(name) for name in ("", ".", "no")],
    ]  # fmt: skip
    return [tried(call) for call in calls] + [sorted(os.listdir("."))]


@program
def a_copied_folder_is_an_error(tf):
    tf.gfile.MkDir("d")
    return tried(lambda: tf.gfile.Copy("d", "e"))[0]


@program
def globs(tf):
    tf.gfile.MakeDirs("d/sub")
    for name in ("f1", "f2", ".hidden", "a[b", "a-z", "sub/f3", "A"):
        write(tf, f"d/{name}", name)
    patterns = ["d/*", "d/f?", "d/f[12]", "d/f[^1]", "d/f[!1]", "d/[a-f]*", "d/f[0-9]", "d/a\\[b", "d/[a-]*", "*/f1",
                "no*", "no/*", "d/f[1", "d/f1", "d", "d/", "", "**/f3", "d/*/*", "d/**", "*/sub/*", "./d/f*",
                "d/sub/../f?", "*", "d/f\\1", "d*/f1", "d/{f1,f2}", "d/f1*"]  # fmt: skip
    found = [(pattern, sorted(tf.gfile.Glob(pattern))) for pattern in patterns]
    here = os.getcwd()
    inside = sorted(tf.gfile.Glob(here + "/d/f*"))
    assert inside == [here + "/d/f1", here + "/d/f2"]
    return found, sorted(tf.gfile.Glob(["d/f1", "d/*/f3"])), sorted(tf.io.gfile.glob("d/f*"))


@program
def walks(tf):
    tf.gfile.MakeDirs("d/e/f")
    tf.gfile.MakeDirs("d/g")
    for name in ("d/1", "d/e/2", "d/e/f/3"):
        write(tf, name, "")

    def walk(*args, **kwargs):
        return [(top, sorted(folders), sorted(files)) for top, folders, files in tf.gfile.Walk(*args, **kwargs)]

    after = walk("d", in_order=False)
    return [sorted(walk("d")), sorted(after), walk("d")[0], after[-1][0], walk("no"), walk("d/1"),
            sorted(tf.gfile.ListDirectory("d"))]  # fmt: skip


@program
def paths(tf):
    write(tf, "a", "text")
    url = "file://" + os.getcwd() + "/a"
    join = tf.io.gfile.join
    return [tf.gfile.Exists(url), tf.gfile.GFile(url).read(), len(tf.gfile.Glob(url + "*")), join("a", "b"),
            join("a", "/b"), tried(lambda: tf.gfile.Exists("nosuch://a"))[0]]  # fmt: skip


# -- tf.python_io -------------------------------------------------------------------------------------------------

OPTIONS = [None, "", "GZIP", "ZLIB", 0, 1, 2]


@program
def whole_files_by_file_io(tf):
    io = module_of(tf, "python.lib.io.file_io", file_io)
    io.write_string_to_file("a", "grün\n")
    io.write_string_to_file(b"b", b"gr\xc3\xbcn\n")
    io.atomic_write_string_to_file("c", "grau\nrot")
    io.atomic_write_string_to_file("c", b"braun\n")
    return (
        [io.read_file_to_string(name) for name in "abc"], io.read_file_to_string("a", binary_mode=True),
        [io.file_crc32(name, block_size) for name in "abc" for block_size in (1, 4, -1)], io.file_crc32("a"),
        io.filecmp("a", "b"), io.filecmp("a", "c"), tried(lambda: io.filecmp("a", "none"))[0],
        tried(lambda: io.atomic_write_string_to_file("a", "", overwrite=False)), io.read_file_to_string("a"),
        tried(lambda: io.atomic_write_string_to_file("none/a", ""))[0], tried(lambda: io.read_file_to_string("none")),
        sorted(io.list_directory(".")), sorted(io.get_matching_files("[ab]")), io.file_exists("c"),
        io.is_directory("a"), io.stat("a").length, io.FileIO("c", mode="r").read(), io.recursive_create_dir("d/e"),
        sorted(io.walk("d", in_order=False)), io.copy("a", "d/a"), io.rename("d/a", "d/b"), io.delete_file("d/b"),
        io.delete_recursively("d"), io.create_dir("f"), os.listdir("f"), "file" in io.get_registered_schemes(),
    )  # fmt: skip


def write_records(tf: Any, path: str, records: list[Any], options: Any = None) -> None:
    with tf.python_io.TFRecordWriter(path, options) as writer:
        for record in records:
            writer.write(record)


def contents(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


@program
def records_with_all_options(tf):
    seen = []
    kinds = tf.python_io.TFRecordCompressionType
    for options in [*OPTIONS, kinds.GZIP, tf.python_io.TFRecordOptions(kinds.ZLIB),
                    tf.python_io.TFRecordOptions("GZIP", compression_level=9, mem_level=4, compression_strategy=2),
                    tf.python_io.TFRecordOptions(), tf.python_io.TFRecordOptions("ZLIB", window_bits=10)]:  # fmt: skip
        write_records(tf, "f", [b"", b"abc" * 50, "é", b"\0" * 3000], options)
        seen.append((contents("f"), list(tf.python_io.tf_record_iterator("f", options))))
    return seen


@program
def options_that_are_refused(tf):
    return [tried(lambda kind=kind: tf.python_io.TFRecordOptions(kind)) for kind in ("BUM", 7)] + [
        tried(lambda: write_records(tf, "f", [], "BUM")), tried(lambda: list(tf.python_io.tf_record_iterator("f", 5))),
        [tf.python_io.TFRecordOptions.get_compression_type_string(o) for o in [*OPTIONS,
                                                                             tf.python_io.TFRecordOptions("GZIP")]],
    ]  # fmt: skip


def read_until_damage(tf: Any, path: str, options: Any = None) -> list[Any]:
    seen: list[Any] = []
    try:
        for record in tf.python_io.tf_record_iterator(path, options):
            seen.append(record)
    except tf.errors.OpError as error:
        seen.append((type(error).__name__, error.message))
    return seen


@program
def damaged_files(tf):
    write_records(tf, "good", [b"one", b"", b"three" * 5])
    good = contents("good")
    seen = []
    for i in range(len(good)):
        with open("bad", "wb") as file:
            file.write(good[:i] + bytes([good[i] ^ 1]) + good[i + 1 :])
        seen.append(read_until_damage(tf, "bad"))
        with open("bad", "wb") as file:
            file.write(good[:i])
        seen.append(read_until_damage(tf, "bad"))
    return seen


@program
def damaged_compressed_files(tf):
    write_records(tf, "plain", [b"one", b"two"])
    seen = [read_until_damage(tf, "plain", kind) for kind in ("GZIP", "ZLIB")]
    for kind in ("GZIP", "ZLIB"):
        write_records(tf, "good", [bytes(range(256)) * 3, b"y"], kind)
        good = contents("good")
        seen.append(read_until_damage(tf, "good"))
        for i in (0, 4, len(good) - 1):
            with open("bad", "wb") as file:
                file.write(good[:i])
            seen.append(read_until_damage(tf, "bad", kind))
    return seen


@program
def a_writer_over_time(tf):
    seen = []
    for options in (None, "GZIP", "ZLIB"):
        writer = tf.python_io.TFRecordWriter("f", options)
        writer.write(b"a" * 100)
        seen.append(len(contents("f")) if options is None else None)
        writer.flush()
        seen += [contents("f"), list(tf.python_io.tf_record_iterator("f", options))]
        writer.write(b"b")
        writer.close()
        writer.close()
        seen += [contents("f"), tried(lambda w=writer: w.write(b"c")), tried(writer.flush)]
    return seen


@program
def records_at_any_place(tf):
    module = module_of(tf, "python.lib.io.tf_record", tfrecord)
    write_records(tf, "f", [b"one", b"", b"two22"])
    reader = module.tf_record_random_reader("f")
    seen = [tried(lambda offset=offset: reader.read(offset)) for offset in (0, 19, 35, 0, 3, 56)]
    reader.close()
    return seen


@program
def files_of_records_that_are_not_there(tf):
    iterator = tf.python_io.tf_record_iterator
    return [tried(lambda: iterator("no")), tried(lambda: list(iterator("."))), tried(lambda: iterator("no", "GZIP")),
            tried(lambda: tf.python_io.TFRecordWriter("no/f")), tried(lambda: write_records(tf, "f", [5]))[0],
            tf.io.TFRecordWriter is tf.python_io.TFRecordWriter]  # fmt: skip


# -- files in graphs ----------------------------------------------------------------------------------------------


@program
def files_in_graphs(tf):
    write(tf, "a", b"\0\xff", "wb")
    tf.gfile.MkDir("d")
    write(tf, "d/b", "text")
    steps = [
        lambda: tf.read_file("a"), lambda: tf.read_file("no"), lambda: tf.read_file("d"), lambda: tf.read_file(["a"]),
        lambda: tf.write_file("x/y/z", b"new\0"), lambda: tf.read_file("x/y/z"), lambda: tf.write_file("d", "text"),
        lambda: tf.write_file(["x"], "y"), lambda: tf.write_file("x", ["y"]), lambda: tf.matching_files("*"),
        lambda: tf.matching_files(["d/*", "a", "no*", "x/y/?"]), lambda: tf.matching_files([["a"]]),
        lambda: tf.matching_files("nowhere/*"), lambda: tf.io.read_file(tf.placeholder_with_default(["a"], None)),
        lambda: tf.io.matching_files(tf.placeholder_with_default([["a"]], None)),
    ]  # fmt: skip

    def run(make: Callable[[], Any]) -> Any:
        with tf.Graph().as_default(), tf.Session() as session:
            fetch = make()
            value = session.run(fetch)
            shape = str(fetch.shape) if hasattr(fetch, "shape") else ""
            return fetch.name, shape, value.tolist() if hasattr(value, "tolist") else value

    return [words(tried(lambda make=make: run(make))) for make in steps]


def words(answer: Any) -> Any:
    """An error without where in the graph it was."""
    if len(answer) == 2 and str(answer[0]).endswith("Error"):
        said = [part for part in answer[1].split("\n") if part and " for '{{node" not in part and "[[{{" not in part]
        return answer[0], [part for part in said if any(k in part for k in ("No such", "Is a", "must be scalar"))][:1]
    return answer
