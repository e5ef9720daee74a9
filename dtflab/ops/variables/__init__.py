"""Variables: state that outlives steps, in reference variables (TF1's default) and resource variables.

Programs: `functions` (assign, scatter, list, initialize), `variable` (the class), `policies` (which kind, creators),
`initializers` (first values), `get_variable` (with templates), `variable_scope` (prefixes and defaults),
`partitioned_variables` (several shards).
Kinds of variables: `ref_variable`, `resource_variable`.
Behind them: `variable_methods` (+, [] and the like, writing parts), `initial_values` (from other variables),
`variable_store` (those of a graph), `variable_slices` (which shard is which part; messages).
Ops: `reference_ops` and `handle_ops` (make, read, assign), `scatter_ops` (rows and slices).
"""
