"""What all questions share: a job on simulated hardware, and the engines that run it.

Pages: `cluster_models`, `job`, `layers`, `layers_of_graph`, `message_rules`, `messages`, `network_profile`,
`outcomes`, `parameters`, `pipelines`, `profile_of_graph`, `profile_of_table`, `record`, `recurrent`, `reductions`,
`step_model`, `stragglers`, `traffic`, `transfers`.
"""
