"""The namespace `tf.train`: how models learn, alone and on many tasks.

Parts: `training_util` (the global step), `optimizers` (from a loss to an update), `replicas` (parameter servers,
synchronous steps, staleness), `collectives` (workers without parameter servers), `input` (queues of examples, and their
threads), `checkpoints` (variables and graphs in files), `summaries` (what TensorBoard shows), `sessions` (training that
survives the loss of a task).

Design: docs/design/train.md
"""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.cluster.server import Server
from dtflab.files.events import summary_iterator
from dtflab.files.graph_io import write_graph
from dtflab.protos.cluster_pb2 import ClusterDef, JobDef
from dtflab.protos.example_pb2 import BytesList, Example, Feature, FeatureList, FeatureLists, Features, FloatList
from dtflab.protos.example_pb2 import Int64List, SequenceExample
from dtflab.protos.saver_pb2 import SaverDef
from dtflab.protos.tensorflow_server_pb2 import ServerDef
from dtflab.train.checkpoints.checkpoint_management import checkpoint_exists, checkpoints_iterator
from dtflab.train.checkpoints.checkpoint_management import generate_checkpoint_state_proto, get_checkpoint_mtimes
from dtflab.train.checkpoints.checkpoint_management import get_checkpoint_state, latest_checkpoint, remove_checkpoint
from dtflab.train.checkpoints.checkpoint_management import update_checkpoint_state
from dtflab.train.checkpoints.checkpoint_utils import NewCheckpointReader, init_from_checkpoint, list_variables
from dtflab.train.checkpoints.checkpoint_utils import load_checkpoint, load_variable
from dtflab.train.checkpoints.meta_graph import export_meta_graph
from dtflab.train.checkpoints.meta_graph_import import import_meta_graph
from dtflab.train.checkpoints.saver import Saver
from dtflab.train.checkpoints.warm_start import warm_start
from dtflab.train.collectives.all_reduce import all_reduce
from dtflab.train.collectives.group import WorkerGroup
from dtflab.train.collectives.hook import AllReduceHook
from dtflab.train.collectives.optimizer import AllReduceOptimizer
from dtflab.train.input import queue_runner
from dtflab.train.input.batching import batch, batch_join, maybe_batch, maybe_batch_join, maybe_shuffle_batch
from dtflab.train.input.batching import maybe_shuffle_batch_join, shuffle_batch, shuffle_batch_join
from dtflab.train.input.producers import input_producer, limit_epochs, match_filenames_once, range_input_producer
from dtflab.train.input.producers import slice_input_producer, string_input_producer
from dtflab.train.input.queue_runner import QueueRunner, add_queue_runner, start_queue_runners
from dtflab.train.optimizers.adadelta import AdadeltaOptimizer
from dtflab.train.optimizers.adagrad import AdagradDAOptimizer, AdagradOptimizer
from dtflab.train.optimizers.adam import AdamOptimizer
from dtflab.train.optimizers.ftrl import FtrlOptimizer
from dtflab.train.optimizers.gradient_descent import GradientDescentOptimizer
from dtflab.train.optimizers.learning_rate_decay import cosine_decay, cosine_decay_restarts, exponential_decay
from dtflab.train.optimizers.learning_rate_decay import inverse_time_decay, linear_cosine_decay, natural_exp_decay
from dtflab.train.optimizers.learning_rate_decay import noisy_linear_cosine_decay, piecewise_constant
from dtflab.train.optimizers.learning_rate_decay import piecewise_constant_decay, polynomial_decay
from dtflab.train.optimizers.momentum import MomentumOptimizer
from dtflab.train.optimizers.moving_averages import ExponentialMovingAverage
from dtflab.train.optimizers.optimizer import Optimizer
from dtflab.train.optimizers.proximal import ProximalAdagradOptimizer, ProximalGradientDescentOptimizer
from dtflab.train.optimizers.rmsprop import RMSPropOptimizer
from dtflab.train.replicas.device_setter import replica_device_setter
from dtflab.train.replicas.staleness import StalenessOptimizer
from dtflab.train.replicas.staleness_log import StalenessLog, read_staleness
from dtflab.train.replicas.sync_replicas import SyncReplicasOptimizer, late_gradients
from dtflab.train.input.coordinator import Coordinator, LooperThread
from dtflab.train.sessions.hooks import FeedFnHook, FinalOpsHook, GlobalStepWaiterHook, LoggingTensorHook
from dtflab.train.sessions.hooks import NanLossDuringTrainingError, NanTensorHook, SecondOrStepTimer, StopAtStepHook
from dtflab.train.sessions.monitored_session import MonitoredSession, MonitoredTrainingSession, SingularMonitoredSession
from dtflab.train.sessions.recording_hooks import CheckpointSaverHook, CheckpointSaverListener, ProfilerHook
from dtflab.train.sessions.recording_hooks import StepCounterHook, SummarySaverHook
from dtflab.train.sessions.scaffold import Scaffold
from dtflab.train.sessions.session_creator import ChiefSessionCreator, SessionCreator, WorkerSessionCreator
from dtflab.train.sessions.session_manager import SessionManager
from dtflab.train.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from dtflab.train.sessions.supervisor import Supervisor, basic_train_loop
from dtflab.train.training_util import assert_global_step, create_global_step, get_global_step
from dtflab.train.training_util import get_or_create_global_step, global_step

__getattr__ = _missing_in("tf.train", globals())
