"""The user's side of a program: graphs, tensors, dtypes, shapes, devices, functions, gradients.

Read `graph` (operations and their names), `operation` (Tensor and Operation), `op_registry` (an op in one class),
`apply_op` (a call of one), `node` (a line of a graph, from client to kernel), `gradients` (the derivative as more
graph).
Types and shapes: `dtypes` (of elements), `tensor_shape` (static shapes), `node_shapes` (of nodes that left their
graph), `static_value` (values known before the step), `indexed_slices` (a gradient as some of its rows).
Values: `convert` (anything to a Tensor), `nested_values` (Python's to arrays), `array_value` (a constant's array),
`tensor_proto` (values as messages), `attr_value` (attributes as messages), `feeds` (what run is given), `fetches` (what
run gives), `valueless` (errors of a program that takes a tensor for its value).
What stands around a new operation: `scopes` (the default graph's), `default_stacks` (of graphs and sessions),
`device_stack` (blocks of devices), `device_spec` (names of devices), `random_seed` (the two seeds of an op),
`graph_keys` (names of collections).
Functions: `function` (pieces of graph with arguments), `function_attr` (as attributes), `tracing` (from Python),
`inlining` (calls become nodes), `loops` (frames, read off a graph).
Graphs as messages: `graph_def` (whole ones), `node_def` (nodes), `op_def_proto` (interfaces of ops), `proto_functions`
(objects in collections), `importer` (the way back), `node_names` (added nodes in words).

Design: docs/design/graph.md
"""
