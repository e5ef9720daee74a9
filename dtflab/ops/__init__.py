"""The operations: one folder per family, one class per op, everything about it in one place.

An op's class is its interface (equal to TensorFlow's OpDef), shape rule, kernel, gradient and cost; `linalg/matmul.py`
is a good first one to read.

What ops share: `all` (imports every family), `shapes`, `costs`, `gradient_rules` (rules of many ops), `type_sets`,
`messages` (TensorFlow's words for errors), `array_module` (NumPy or CuPy), `blas` (its threads), `forwarding`
(results in their inputs' buffers), `kernel_registry` (which device has which kernel), `entropy` (seeds where a
program gives none), `operators` (a + b, a[i]), `sendrecv` (what the master adds).
State of a task: `resource_mgr` (containers), `resources` (those of a program), `handles`.

Arrays: `arrays` (constants, shapes, joining), `indexing` (slicing, gathering, sorting), `math` (element by element),
`reduce` (many values to few), `linalg` (matrices and transforms), `sampling` (random numbers), `sparse`.
Networks: `nn` (activations, losses, normalization), `conv` (convolutions), `pool` (pooling), `labels` (many
classes, sequences of labels), `training` (optimizer steps, checkpoints), `summaries`.
Programs: `control` (order, branches, loops), `assertions`, `functional` (functions as arguments), `lists` (of tensors),
`variables`, `queues` (with readers and accumulators), `tables`, `datasets`.
Bytes: `text` (strings and files), `examples` (features), `images`.

Design: docs/design/ops.md
"""
