"""Variables: state that outlives steps, in reference variables (TF1's default) and resource variables.

Programs: `variable` (the class), `functions` (assign, scatter, list, initialize), `initializers` (first values),
`get_variable` (with templates), `variable_scope` (prefixes and defaults), `policies` (which kind, creators),
`partitioned_variables` (several shards).
Kinds of variables: `reference_variable` (everybody reads one Identity), `resource_variable` (each use is a
read).
Behind them: `variable_methods` (+, [] and the like, writing parts), `initial_values` (from other variables),
`variable_store` (those of a graph), `variable_slices` (which shard is which part; messages).
Ops: `reference_ops` (VariableV2 and Assign), `resource_ops` (make, read, assign by a handle), `scatter_ops` (rows
and slices).
"""
