"""The namespace `tf.train`: optimizers, the global step, and where the variables of a replicated model go.

Design: docs/design/train.md
"""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.cluster.server import Server
from dtflab.files.events import summary_iterator
from dtflab.files.graph_io import write_graph
from dtflab.protos.cluster_pb2 import ClusterDef, JobDef
from dtflab.protos.example_pb2 import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from dtflab.protos.saver_pb2 import SaverDef
from dtflab.protos.tensorflow_server_pb2 import ServerDef
from dtflab.train.checkpoints.checkpoint_management import (
    checkpoint_exists,
    checkpoints_iterator,
    generate_checkpoint_state_proto,
    get_checkpoint_mtimes,
    get_checkpoint_state,
    latest_checkpoint,
    remove_checkpoint,
    update_checkpoint_state,
)
from dtflab.train.checkpoints.checkpoint_utils import (
    NewCheckpointReader,
    init_from_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)
from dtflab.train.checkpoints.meta_graph import export_meta_graph
from dtflab.train.checkpoints.meta_graph_import import import_meta_graph
from dtflab.train.checkpoints.saver import Saver
from dtflab.train.checkpoints.warm_start import warm_start
from dtflab.train.collectives.all_reduce import all_reduce
from dtflab.train.collectives.group import WorkerGroup
from dtflab.train.collectives.hook import AllReduceHook
from dtflab.train.collectives.optimizer import AllReduceOptimizer
from dtflab.train.input import queue_runner
from dtflab.train.input.batching import (
    batch,
    batch_join,
    maybe_batch,
    maybe_batch_join,
    maybe_shuffle_batch,
    maybe_shuffle_batch_join,
    shuffle_batch,
    shuffle_batch_join,
)
from dtflab.train.input.producers import (
    input_producer,
    limit_epochs,
    match_filenames_once,
    range_input_producer,
    slice_input_producer,
    string_input_producer,
)
from dtflab.train.input.queue_runner import QueueRunner, add_queue_runner, start_queue_runners
from dtflab.train.optimizers.adadelta import AdadeltaOptimizer
from dtflab.train.optimizers.adagrad import AdagradOptimizer
from dtflab.train.optimizers.adagrad_da import AdagradDAOptimizer
from dtflab.train.optimizers.adam import AdamOptimizer
from dtflab.train.optimizers.ftrl import FtrlOptimizer
from dtflab.train.optimizers.gradient_descent import GradientDescentOptimizer
from dtflab.train.optimizers.learning_rate_decay import (
    cosine_decay,
    cosine_decay_restarts,
    exponential_decay,
    inverse_time_decay,
    linear_cosine_decay,
    natural_exp_decay,
    noisy_linear_cosine_decay,
    piecewise_constant,
    piecewise_constant_decay,
    polynomial_decay,
)
from dtflab.train.optimizers.momentum import MomentumOptimizer
from dtflab.train.optimizers.moving_averages import ExponentialMovingAverage
from dtflab.train.optimizers.optimizer import Optimizer
from dtflab.train.optimizers.proximal_adagrad import ProximalAdagradOptimizer
from dtflab.train.optimizers.proximal_gradient_descent import ProximalGradientDescentOptimizer
from dtflab.train.optimizers.rmsprop import RMSPropOptimizer
from dtflab.train.replicas.device_setter import replica_device_setter
from dtflab.train.replicas.staleness import StalenessOptimizer
from dtflab.train.replicas.staleness_log import StalenessLog, read_staleness
from dtflab.train.replicas.sync_replicas import SyncReplicasOptimizer, late_gradients
from dtflab.train.sessions.basic_loops import basic_train_loop
from dtflab.train.sessions.coordinator import Coordinator, LooperThread
from dtflab.train.sessions.hook_timer import SecondOrStepTimer
from dtflab.train.sessions.hooks import (
    FeedFnHook,
    FinalOpsHook,
    GlobalStepWaiterHook,
    LoggingTensorHook,
    NanLossDuringTrainingError,
    NanTensorHook,
    StopAtStepHook,
)
from dtflab.train.sessions.monitored_session import MonitoredSession, MonitoredTrainingSession, SingularMonitoredSession
from dtflab.train.sessions.recording_hooks import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    ProfilerHook,
    StepCounterHook,
    SummarySaverHook,
)
from dtflab.train.sessions.scaffold import Scaffold
from dtflab.train.sessions.session_creator import ChiefSessionCreator, SessionCreator, WorkerSessionCreator
from dtflab.train.sessions.session_manager import SessionManager
from dtflab.train.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from dtflab.train.sessions.supervisor import Supervisor
from dtflab.train.training_util import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
    global_step,
)

__all__ = [
    "AdadeltaOptimizer",
    "AdagradDAOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "AllReduceHook",
    "AllReduceOptimizer",
    "BytesList",
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "ChiefSessionCreator",
    "ClusterDef",
    "ClusterSpec",
    "Coordinator",
    "Example",
    "ExponentialMovingAverage",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FeedFnHook",
    "FinalOpsHook",
    "FloatList",
    "FtrlOptimizer",
    "GlobalStepWaiterHook",
    "GradientDescentOptimizer",
    "Int64List",
    "JobDef",
    "LoggingTensorHook",
    "LooperThread",
    "MomentumOptimizer",
    "MonitoredSession",
    "MonitoredTrainingSession",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "NewCheckpointReader",
    "Optimizer",
    "ProfilerHook",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "QueueRunner",
    "RMSPropOptimizer",
    "Saver",
    "SaverDef",
    "Scaffold",
    "SecondOrStepTimer",
    "SequenceExample",
    "Server",
    "ServerDef",
    "SessionCreator",
    "SessionManager",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "SingularMonitoredSession",
    "StalenessLog",
    "StalenessOptimizer",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
    "Supervisor",
    "SyncReplicasOptimizer",
    "WorkerGroup",
    "WorkerSessionCreator",
    "add_queue_runner",
    "all_reduce",
    "assert_global_step",
    "basic_train_loop",
    "batch",
    "batch_join",
    "checkpoint_exists",
    "checkpoints_iterator",
    "cosine_decay",
    "cosine_decay_restarts",
    "create_global_step",
    "exponential_decay",
    "export_meta_graph",
    "generate_checkpoint_state_proto",
    "get_checkpoint_mtimes",
    "get_checkpoint_state",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "import_meta_graph",
    "init_from_checkpoint",
    "input_producer",
    "inverse_time_decay",
    "late_gradients",
    "latest_checkpoint",
    "limit_epochs",
    "linear_cosine_decay",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "match_filenames_once",
    "maybe_batch",
    "maybe_batch_join",
    "maybe_shuffle_batch",
    "maybe_shuffle_batch_join",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
    "queue_runner",
    "range_input_producer",
    "read_staleness",
    "remove_checkpoint",
    "replica_device_setter",
    "shuffle_batch",
    "shuffle_batch_join",
    "slice_input_producer",
    "start_queue_runners",
    "string_input_producer",
    "summary_iterator",
    "update_checkpoint_state",
    "warm_start",
    "write_graph",
]


def __getattr__(name: str) -> Any:
    raise _missing("tf.train", name, globals())
