"""The ops of a mutex: what a critical section locks and releases.

Stands for `core/kernels/mutex_ops.cc`.

Rule: MutexLock gives out a Token. The mutex is free again when the token is consumed, when its step fails, or when
nothing holds the token any more.
"""

from __future__ import annotations

from dtflab.base import errors
from dtflab.graph.op_registry import op
from dtflab.ops import shapes
from dtflab.ops.control.state import Mutex
from dtflab.ops.costs import FreeOp, StatefulOp
from dtflab.ops.handles import new_or_shared, resource_of


@op("""MutexV2() -> (resource: resource)
       container: string = ''
       shared_name: string = ''""")
class MutexV2(StatefulOp):
    infer = shapes.scalar

    def bind(node, xp):
        return new_or_shared(node, Mutex, "Mutex", lambda ctx, name: Mutex())


@op("MutexLock(mutex: resource) -> (mutex_lock: variant)")
class MutexLock(FreeOp):
    stateful = True
    is_async = True
    infer = shapes.scalar

    def bind(node, xp):
        def lock(ctx, handle, done):
            mutex = resource_of(ctx, handle, Mutex)
            forget = []

            def entered(token, error):
                for take_back in forget:
                    take_back()
                token.forget = ctx.on_cancel(lambda why: token.release())
                done(token)

            def give_up(why):
                if mutex.forget(entered):
                    done(None, errors.CancelledError.of("Lock acquisition cancelled."))

            mutex.lock(entered)
            forget.append(ctx.on_cancel(give_up))

        return lock


@op("ConsumeMutexLock(mutex_lock: variant) -> ()")
class ConsumeMutexLock(FreeOp):
    stateful = True
    infer = shapes.none

    def bind(node, xp):
        return lambda token: token.release()
