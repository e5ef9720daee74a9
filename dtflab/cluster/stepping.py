"""Stepping through a step whose master is in another process: the calls that the master answers, and `Steps` over them.

Stands for nothing in TensorFlow.

Rules: the step stands still at its master; what crosses between two sets is text (JSON), and at the end the values. A
step whose client is gone, or lets go of it, is closed; else it ends with its session.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dtflab.base import errors
from dtflab.cluster.tensor_codec import Buffer, Pieces, parse_named, serialize_named
from dtflab.machine.clock import REAL
from dtflab.protos import master_pb2 as messages
from dtflab.runtime.steps import Counter, Ran, Record, Standing, Steps

if TYPE_CHECKING:
    from dtflab.cluster.answering import Method, ServerCall
    from dtflab.protos.config_pb2 import RunMetadata, RunOptions
    from dtflab.runtime.transport import Explain, Feeds, LocalMaster

Call = Callable[[str, Pieces], Buffer]  # (method, request) → answer; raises a class of `errors`
Start = Callable[[str, Pieces], Callable[[], object]]  # the same without waiting; the result gives up


class _Held:
    """A step that stands still at its master."""

    def __init__(self, steps: Steps, request: messages.RunStepRequest, response: messages.RunStepResponse) -> None:
        self.steps, self.request, self.response = steps, request, response
        self.ended = REAL.event()


class Stepping:
    """The master's side: it keeps the steps under way by their numbers. `check(count)` refuses one too many."""

    def __init__(self, master: LocalMaster, check: Callable[[int], object]) -> None:
        self._master, self._check = master, check
        self._numbers = itertools.count(1)
        self._held: dict[int, _Held] = {}

    def methods(self) -> Mapping[str, Method]:
        """Method name → its function."""
        return {"StepThrough": self._begin, "NextSet": self._next, "StepNodes": self._nodes, "StepValues": self._values,
                "CloseStep": self._close, "AwaitStep": self._await}  # fmt: skip

    def forget(self, handle: str) -> None:
        """A session has ended, and its steps with it."""
        for number in [n for n, held in list(self._held.items()) if held.request.session_handle == handle]:
            self._drop(number)

    def _begin(self, data: Buffer, call: ServerCall) -> bytes:
        request, feeds = parse_named(messages.RunStepRequest, data, "feed")
        response = messages.RunStepResponse()
        self._check(len(self._held))
        steps = self._master.step_through(
            request.session_handle, feeds, list(request.fetch), list(request.target), request.options,
            response.metadata, rebuild=lambda values: values, explain=_as_it_is,
        )  # fmt: skip
        number = next(self._numbers)
        self._held[number] = _Held(steps, request, response)
        call.on_end(lambda why: self._drop(number))  # nobody will ever know its number
        return _text({"number": number, **_state(steps)})

    def _next(self, data: Buffer, call: ServerCall) -> bytes:
        number, patient = _request(data)
        steps = self._found(number).steps
        call.on_end(lambda why: steps.close())
        record = steps._run(patient)
        return _text({"record": record, **_state(steps)})

    def _nodes(self, data: Buffer, call: ServerCall) -> bytes:
        return _text(self._found(_request(data)[0]).steps.nodes)

    def _values(self, data: Buffer, call: ServerCall) -> Pieces:
        held = self._found(_request(data)[0])
        values: Sequence[object] = held.steps.finish()
        return serialize_named(held.response, "tensor", zip(held.request.fetch, values, strict=True))

    def _close(self, data: Buffer, call: ServerCall) -> bytes:
        self._drop(_request(data)[0])
        return _text({})

    def _await(self, data: Buffer, call: ServerCall) -> bytes:
        """The client's hold on a step, which lasts as long as this call."""
        number, _ = _request(data)
        held = self._found(number)
        call.on_end(lambda why: held.ended.set())
        held.ended.wait()
        self._drop(number)
        return _text({})

    def _drop(self, number: int) -> None:
        if held := self._held.pop(number, None):
            held.steps.close()
            held.ended.set()

    def _found(self, number: int) -> _Held:
        try:
            return self._held[number]
        except KeyError:
            raise errors.InvalidArgumentError.of(f"No step {number} stands still here.") from None


def _request(data: Buffer) -> tuple[int, bool]:
    """The number of a step, and whether to wait if no node is ready; InvalidArgumentError for anything else."""
    try:
        asked = json.loads(bytes(data))
        return int(asked["number"]), bool(asked.get("patient"))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise errors.InvalidArgumentError.of(f"Unable to parse the request for a step by hand: {error!r}") from None


def _as_it_is(error: BaseException) -> BaseException:
    return error


def _text(value: object) -> bytes:
    return json.dumps(value).encode()


def _state(steps: Steps) -> dict[str, Any]:
    return {"ready": steps.ready, "waiting": steps.waiting, "counts": steps.counts,
            "over": steps.over, "unseen": steps.unseen}  # fmt: skip


class RemoteSteps(Steps):
    """`Steps` whose step stands still in another process."""

    def __init__(
        self, call: Call, start: Start, handle: str, feeds: Feeds, fetches: Sequence[str], targets: Sequence[str],
        options: RunOptions | None, metadata: RunMetadata | None, rebuild: Callable[[list[object]], object],
        explain: Explain,
    ) -> None:  # fmt: skip
        self.records = []
        self._values: list[object] = []
        self._call, self._fetches = call, fetches
        self._metadata, self._rebuild, self._explained = metadata, rebuild, explain
        self._failed: BaseException | None = None
        request = messages.RunStepRequest(session_handle=handle, fetch=fetches, target=targets, options=options)
        self._state = json.loads(bytes(call("StepThrough", serialize_named(request, "feed", feeds))))
        self._is_closed = False
        self._let_it_go = start("AwaitStep", self._named())

    @property
    def error(self) -> BaseException | None:
        return self._failed

    @property
    def unseen(self) -> list[str]:
        return list(self._state["unseen"])

    @property
    def ready(self) -> list[str]:
        return list(self._state["ready"])

    @property
    def counts(self) -> dict[str, int]:
        return dict(self._state["counts"])

    @property
    def waiting(self) -> list[str]:
        return list(self._state["waiting"])

    @property
    def over(self) -> bool:
        return self._failed is not None or bool(self._state["over"])

    @property
    def nodes(self) -> list[Standing]:
        return [Standing(*row) for row in self._asked("StepNodes")]

    def close(self) -> None:
        """Give the step up; its master lets go of it in any case."""
        if not self._is_closed:
            self._is_closed = True
            self._failed = self._failed or (None if self.over else errors.CancelledError.of("The step was closed."))
            self._asked("CloseStep")

    def __del__(self) -> None:
        if hasattr(self, "_let_it_go") and not sys.is_finalizing():
            self._let_it_go()

    def _named(self, **more: object) -> Pieces:
        return [_text({"number": self._state["number"], **more})]

    def _asked(self, method: str, **more: object) -> Any:
        return json.loads(bytes(self._call(method, self._named(**more))))

    def _run(self, patient: bool = False) -> Record:
        try:
            found = self._asked("NextSet", patient=patient)
        except (errors.OpError, KeyboardInterrupt) as error:
            self._failed = error
            raise self._explained(error) from None
        self._state.update({name: found[name] for name in ("ready", "waiting", "counts", "over")})
        number, ran, counters, ready, waiting = found["record"]
        record = Record(number, [Ran(*one) for one in ran], [Counter(*one) for one in counters], ready, waiting)
        if record.ran:
            self.records.append(record)
        return record

    def _collect(self) -> object:
        data = self._call("StepValues", self._named())
        response, tensors = parse_named(messages.RunStepResponse, data, "tensor")
        if self._metadata is not None:
            self._metadata.CopyFrom(response.metadata)
        values = dict(tensors)
        self._values.append(self._rebuild([values[name] for name in self._fetches]))
        return self._values[0]
