"""What operations exist: one family per file, one class per op, everything about it in one place.

An op's class is its interface (equal to TensorFlow's OpDef), shape rule, kernel, gradient and cost; `matmul.py` is a
good first one to read. Below, each file once, by theme; where its name says enough, nothing more is said. Files that
hold no op are the functions that programs call (`convolutions.py`), or the state behind an op (`queue_state.py`).

What ops share: `all` (imports every family), `elementwise` (one line per op), `shapes` and `costs` (rules of many ops),
`type_sets`, `messages` (TensorFlow's words for errors), `array_module` (NumPy or CuPy), `blas` (its threads),
`forwarding` (results in their inputs' buffers), `kernel_registry` (which device has which kernel), `operators`
(`a + b`, `a[i]`), `custom_gradient`, `sendrecv` (what the master adds), `fused` and `fused_conv` (what a TensorFlow
master makes out of ours), `script` (py_func), `timestamp`.

Values and their forms: `constant` (and placeholders, fills, ranges), `array` (identity, shape, rank, size),
`casting`, `reshaping`, `repeating` (broadcast, tile, pad), `mirror_pad`, `arranging` (roll, repeat, meshgrid),
`joining` (concat, split), `stacking`, `slicing`, `gathering`, `indexing` (numbers and places), `along_axis` (argmax,
cumsum), `sorting`, `diagonal`, `space_batch` (blocks of images), `random_crop`.

Arithmetic, element by element: `math` (of two inputs), `unary` (of one), `division`, `zero_times`, `logic`, `bitwise`,
`clipping`; `special` with `gamma_functions`, `bessel` and `normal_quantile` (its numbers).

Many values to few: `reduction`, `statistics` (made of several reductions), `counting`, `segments`,
`segment_reductions`, `confusion_matrix`, `sets`.

Matrices and transforms: `matmul`, `einsum` with `equations`, `tensordot`, `cross`, `linalg` (eye, trace, norm, batches
of diagonals), `solving`, `factorizations` (Cholesky, LU) and `lu_solving`, `decomposition` (Qr, inverse), `eigen`,
`matrix_exponential`, `sparse_matmul` (mostly zeros), `fourier`; `hessians`.

Random numbers: `philox` (TensorFlow's generator), `entropy` (without a seed), `random`, `stateless`, `sampling` with
`rejection` (gamma, Poisson).

Networks: `activations`, `bias`, `nn` (several ops in one function), `softmax`, `cross_entropy`, `moments`,
`batch_norm`, `lrn`, `ranking` (top_k), `embedding`, `weights_broadcast` (of losses and metrics);
many classes: `candidate_sampling` with `range_samplers`, `sampled_losses`;
sequences of labels: `ctc_loss`, `ctc_decoding`, `repeated_labels`, `edit_distance`;
eight bits: `quantize`, `fake_quant`.

Windows over images: `windows` (where they stand), `conv` with `conv_kernels`, `depthwise`, `atrous` (with holes),
`convolutions` (the functions of all three), `pooling` with `pooling_kernels`, `fractional_pooling`, `pools` (their
functions), `dilation`, `patches`.

Branches, loops, functions: `control_flow` (Switch, Merge, frames) with `control_flow_gradients`,
`control_flow_context`, `cond`, `case`, `while_loop` with `while_context`, `loop_gradients` with `loop_sums` and `stack`
(values kept for them), `functional` (map_fn, scan), `functional_ops` (TensorFlow 2's forms), `checks` with
`assertions`, `critical_section`.

Lists of tensors: `tensor_array` with `tensor_array_rows` (stack, concat), `tensor_array_state` and `tensor_arrays`;
TensorFlow 2's: `variants`, `tensor_list`, `tensor_list_rows`, `optional`.

Variables: `variable` and `variables` (both kinds), `cell` (where a value lives); reference ones: `ref_variable`,
`state`, `temporary_variable`; resource ones: `resource_variable`, `resource`, `resource_sparse`; rows and slices:
`scatter`, `scatter_nd` with `scatter_nd_shapes`, `slice_assign`, `variable_slices`, `partitioned_variables`; by name:
`variable_scope`, `variable_store`, `template`; first values: `initializers`, `initialized`.

What lives in a task: `resource_mgr` (containers), `resources` (those of a program), `handles`;
queues: `queue`, `queue_kinds`, `queue_resource`, `queue_state`, `queues`;
readers: `reader`, `reader_state`, `readers`;
accumulators: `accumulator`, `accumulator_state`, `accumulators`;
tables: `lookup_table`, `lookup_table_ops`, `lookup`, `lookup_initializers`;
values of a session: `session_ops`.

Data sets: `dataset` (as a value), `dataset_sources`, `dataset_files`, `dataset_order`, `dataset_shuffle`,
`dataset_batch`, `dataset_functions`, `dataset_groups`, `dataset_threads`; `iterator` with `iterator_resource`.

Sparse tensors: `sparse_tensor`, `sparse` and `sparse_arithmetic` (functions), `sparse_math` (sums and products),
`sparse_places` (elements moved), `sparse_segments`, `sparse_messages` and `sparse_tensors_map` (through queues).

Text, bytes, files: `strings`, `substrings`, `regex` with `backtracking`, `string_hash`, `as_string`, `encoding`,
`decoding`, `numerals` (text → numbers), `csv`, `file_ops`, `image` (PNG), `serializing`; Examples: `features`,
`parsing`, `example`, `example_values`, `sequence_example`.

Images: `image_flips`, `image_crops`, `image_dtype`, `image_adjusting` with the ops in `image_colors`, `image_resizing`
with those in `image_resize` over `resampling`, `image_boxes`, `image_measures`; `image_checks`.

Training and looking: `training` with `training_rules`, `saveable`, `save_restore`, `summary` with `summary_ops` and
`histogram`, `debug` (Print) with `summarize`.
"""
