"""Files: file system, checksums, record files, checkpoint tables, event files. No graph, no session.

File system: `gfile` (TensorFlow's interface), `paths` (their names and errors), `patterns` (`*` and `?`), `env` (what
a task's steps may open), `atomic` (written whole or not at all).
Records: `tfrecord` (byte strings with checksums), `crc` (the checksums), `compression` (deflated streams), `sources`
(records of a reader's file), `events` (what TensorBoard reads).
Checkpoints: `checkpoint_reader` (either format), `table` (sorted keys and values), `bundle` (reading V2),
`bundle_writer` (writing V2), `checkpoint_v1` (before TensorFlow 1.0), `tensor_slice` (blocks of tensors).
Others: `graph_io` (graphs), `timeline` (a trace for Chrome), `png` (pictures), `wav` (sound).

Design: docs/design/files.md
"""
