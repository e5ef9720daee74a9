"""The base of all questions: a job on simulated hardware, and the engines that run it.

What a network costs: `network_profile` (a Profile, layer by layer), `layer_costs` (one layer), `profile_of_graph` (what
each op costs), `layers_of_graph` (which op belongs to which layer), `profile_of_table` (from a few published numbers).
On which hardware: `cluster_models` (tasks and wires of a cluster that never runs), `parameters` (what no data sheet
says), `fitted` (their values, fitted to measurements), `stragglers` (devices that compute longer than planned).
The job: `traffic` (what a worker computes and sends in a step), `job` (that of all workers, on their wires).
Engines: `step_model` (a step as scans), `transfers` (the scans), `messages` (every message an event), `message_rules`
(when a step ends), `reductions` (all-reduce), `pipelines` (stages and micro-batches).
Results: `record` (the moments of a run), `critical_path` (what the last update waited for).
"""
