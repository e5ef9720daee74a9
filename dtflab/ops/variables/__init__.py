"""Variables of both kinds, rows and slices of them, names and scopes, first values.

Pages: `cell`, `functions`, `handle_ops`, `handle_rows`, `initialized`, `initializers`, `partitioned_variables`,
`ref_variable`, `resource_variable`, `scatter`, `scatter_nd`, `scatter_nd_shapes`, `slice_assign`, `state`,
`template`, `temporary_variable`, `variable`, `variable_scope`, `variable_slices`, `variable_store`.
"""
