"""FileWriter: brings summaries, graphs and traces into an event file, where TensorBoard finds them.

Stands for `python/summary/writer/writer.py` and `writer_cache.py`.

Rule: what a tag is (its metadata) is written with its first value only.
"""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from typing import Any

from dtflab.base import tf_logging
from dtflab.base.closing import Closing
from dtflab.files import gfile
from dtflab.graph.graph import Graph
from dtflab.graph.scopes import get_default_graph
from dtflab.machine.clock import CURRENT
from dtflab.protos.config_pb2 import RunMetadata
from dtflab.protos.event_pb2 import Event, TaggedRunMetadata
from dtflab.protos.graph_pb2 import GraphDef
from dtflab.protos.meta_graph_pb2 import MetaGraphDef
from dtflab.protos.summary_pb2 import Summary
from dtflab.runtime.session import BaseSession
from dtflab.train.checkpoints.meta_graph import create_meta_graph_def
from dtflab.train.summaries.event_file_writer import EventFileWriter
from dtflab.train.summaries.plugin_asset import get_all_plugin_assets

_PLUGINS_DIR = "plugins"


class FileWriter(Closing):
    """Writes a new event file in the folder `logdir`, which it makes if need be.

    >>> with tf.summary.FileWriter(logdir, session.graph) as writer:
    ...     writer.add_summary(session.run(merged), global_step=step)
    """

    def __init__(
        self,
        logdir: str,
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: BaseSession | None = None,
    ) -> None:
        """Open the file, and write `graph` first if there is one; `graph_def` is its old form.

        At most `max_queue` events wait for being written; the file is flushed every `flush_secs` seconds. Writers
        made with the same `session` for the same folder share one file.
        """
        make = EventFileWriter if session is None else _writers_of(session)
        self.event_writer = make(logdir, max_queue, flush_secs, filename_suffix)
        self._closed = False
        self._session_run_tags: set[str] = set()
        self._seen_summary_tags: set[str] = set()
        if graph is not None or graph_def is not None:
            self.add_graph(graph=graph, graph_def=graph_def)
            plain = graph.as_graph_def(add_shapes=True) if isinstance(graph, Graph) else graph
            self.add_meta_graph(create_meta_graph_def(graph_def=graph_def or plain))

    def get_logdir(self) -> str:
        """The folder of the event file."""
        return self.event_writer.get_logdir()

    # -- what is written -----------------------------------------------------------------------------------------

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Write a Summary, or the bytes that a summary op gave, as the values at `global_step`."""
        event = Event(summary=Summary.FromString(summary) if isinstance(summary, bytes) else summary)
        for value in event.summary.value:
            if value.tag in self._seen_summary_tags:
                value.ClearField("metadata")
            self._seen_summary_tags.add(value.tag)
        self._add_event(event, global_step)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Write a SessionLog: that a session started, stopped, or saved a checkpoint."""
        self._add_event(Event(session_log=session_log), global_step)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Write a Graph, so that TensorBoard draws it. A GraphDef, in either argument, is TF1's older form."""
        if graph is not None and graph_def is not None:
            raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
        given = graph_def if graph is None else graph
        if isinstance(given, Graph):
            self._write_plugin_assets(given)
            given = given.as_graph_def(add_shapes=True)
        elif isinstance(given, GraphDef):
            tf_logging.warning(
                "Passing a `GraphDef` to the SummaryWriter is deprecated. Pass a `Graph` object instead, such as "
                "`sess.graph`."
            )
        else:
            raise TypeError("The passed graph must be an instance of `Graph` or the deprecated `GraphDef`")
        self._add_event(Event(graph_def=given.SerializeToString()), global_step)

    def _write_plugin_assets(self, graph: Graph) -> None:
        for asset in get_all_plugin_assets(graph):
            folder = os.path.join(self.get_logdir(), _PLUGINS_DIR, str(asset.plugin_name))
            gfile.makedirs(folder)
            for name, content in asset.assets().items():
                with gfile.GFile(os.path.join(folder, name), "w") as file:
                    file.write(content)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Write a MetaGraphDef."""
        if not isinstance(meta_graph_def, MetaGraphDef):
            raise TypeError(f"meta_graph_def must be type MetaGraphDef, saw type: {type(meta_graph_def)}")
        self._add_event(Event(meta_graph_def=meta_graph_def.SerializeToString()), global_step)

    def add_run_metadata(self, run_metadata: RunMetadata, tag: str, global_step: Any = None) -> None:
        """Write the RunMetadata of one run under a `tag`, which no other run of this writer may have."""
        if tag in self._session_run_tags:
            raise ValueError("The provided tag was already used for this event type")
        self._session_run_tags.add(tag)
        tagged = TaggedRunMetadata(tag=tag, run_metadata=run_metadata.SerializeToString())
        self._add_event(Event(tagged_run_metadata=tagged), global_step)

    def _add_event(self, event: Any, step: Any) -> None:
        event.wall_time = CURRENT.time()
        if step is not None:
            event.step = int(step)
        self.add_event(event)

    def add_event(self, event: Any) -> None:
        """Write an Event as it is."""
        self._warn_if_closed()
        self.event_writer.add_event(event)

    # -- the file ------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Returns when everything so far is in the file."""
        self._warn_if_closed()
        self.event_writer.flush()

    def close(self) -> None:
        """Write what is left and close the file."""
        self.event_writer.close()
        self._closed = True

    def reopen(self) -> None:
        """After `close`: more events go into a new file."""
        self.event_writer.reopen()
        self._closed = False

    def _warn_if_closed(self) -> None:
        if self._closed:
            warnings.warn(
                "Attempting to use a closed FileWriter. The operation will be a noop unless the FileWriter is "
                "explicitly reopened.",
                stacklevel=3,
            )


_shared: weakref.WeakKeyDictionary[Any, dict[str, EventFileWriter]] = weakref.WeakKeyDictionary()


def _writers_of(session: BaseSession) -> Any:
    """A function that makes EventFileWriters, shared by all FileWriters of a session."""
    writers = _shared.setdefault(session, {})

    def writer_of(logdir: str, *arguments: Any) -> EventFileWriter:
        if logdir not in writers:
            writers[logdir] = EventFileWriter(logdir, *arguments)
        writers[logdir].reopen()
        return writers[logdir]

    return writer_of


class FileWriterCache:
    """One FileWriter per folder, for all parts of a program that write there."""

    _cache: dict[str, FileWriter] = {}
    _lock = threading.RLock()

    @staticmethod
    def clear() -> None:
        """Close all and forget them."""
        with FileWriterCache._lock:
            for writer in FileWriterCache._cache.values():
                writer.close()
            FileWriterCache._cache.clear()

    @staticmethod
    def get(logdir: str) -> FileWriter:
        """The writer of a folder; the first time it writes the default graph."""
        with FileWriterCache._lock:
            if logdir not in FileWriterCache._cache:
                FileWriterCache._cache[logdir] = FileWriter(logdir, graph=get_default_graph())
            return FileWriterCache._cache[logdir]
