"""Variables: state that outlives steps, in reference variables (TF1's default) and resource variables.

Programs: `functions` (assign, scatter, list, initialize), `variable` (the class), `ref_variable` and
`resource_variable` (its two kinds), `policies` (which kind, creators), `initializers` (first values).
By name: `get_variable` (with templates), `variable_scope` (prefixes and defaults), `variable_store` (those of a graph),
`partitioned_variables` (several shards), `variable_slices` (which shard is which part; messages).
Parts of variables: `operators` (+, [] and the like, writing parts), `initial_values` (from other variables).
Ops: `reference_ops` and `handle_ops` (make, read, assign), `scatter_ops` (rows and slices), `cell` (where a value
lives), `scatter` (writing into arrays).
"""
