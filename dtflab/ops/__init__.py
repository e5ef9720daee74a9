"""The operations: one folder per family, one class per op, everything about it in one place.

An op's class is its interface (equal to TensorFlow's OpDef), shape rule, kernel, gradient and cost; `linalg/matmul.py`
is a good first one to read.

A family's contents begin with `Programs:`, the pages that programs call: `functions.py`, and a page each for large
subjects, such as `control/cond.py`. Only these may be imported by other families; code that several families share is
in the hall, the files listed next. The class of a resource is in `state.py`, and in `queues/`, which has three, in
`shared_queue.py` and the like. A page of ops is named `…_ops` where the word alone says something else:
`variables/reference_ops.py` has the ops behind the class in `variables/reference_variable.py`.

What ops share: `all` (imports every page that registers something), `shapes` (shape rules of many ops), `costs` (flops
and bytes of those that do not touch everything), `gradient_rules` (rules of many ops), `type_sets` (dtypes that many
interfaces name), `messages` (TensorFlow's words for errors), `array_module` (NumPy or CuPy), `blas` (its threads),
`forwarding` (results in their inputs' buffers), `kernel_registry` (which device has which kernel), `entropy` (seeds
where a program gives none), `operators` (a + b, a[i]), `sendrecv` (what the master adds).
Array code of several families: `windows` (of convolutions and pooling), `scatter` (rows and slices written), `strides`
(masks as NumPy's index), `segment_kernels` (rows with one number), `sparse_arrays` (order and checks of indices),
`variants` (lists and optional values), `philox` (random numbers), `numerals` (texts that are numbers).
State of a task: `resource_mgr` (containers), `handles` (names of what is in them), `cell` (where a variable's value
lives); what a program declares: `registered_resources` (initialized together with variables), `saveable` (what
checkpoints hold).

Arrays: `arrays` (constants, shapes, joining), `math` (element by element), `reduce` (many values to few), `indexing`
(slicing, gathering, sorting), `linalg` (matrices and transforms), `sampling` (random numbers), `sparse` (the few
elements that a tensor has).
Networks: `nn` (activations, losses, normalization), `conv` (convolutions), `pool` (pooling), `labels` (many classes,
sequences of labels), `training` (optimizer steps, checkpoints), `summaries` (values for TensorBoard and the eye).
Programs: `variables` (state that outlives steps), `control` (order, branches, loops), `assertions` (checks of values
and shapes), `functional` (functions as arguments), `lists` (of tensors), `queues` (with readers and accumulators),
`tables` (values by key), `datasets` (data sets and iterators).
Bytes: `text` (strings and files), `examples` (features), `images` (pixels, sizes, files).

Design: docs/design/ops.md
"""
