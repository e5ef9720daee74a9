"""The base of all questions: a job on simulated hardware, and the engines that run it.

Pages: `cluster_models`, `critical_path`, `job`, `layer_costs`, `layers_of_graph`, `message_rules`, `messages`,
`network_profile`, `parameters`, `pipelines`, `profile_of_graph`, `profile_of_table`, `record`, `reductions`,
`step_model`, `stragglers`, `traffic`, `transfers`.
"""
