"""Many tasks: what a cluster is made of, how its tasks start, and how they reach each other.

Read `cluster` (many tasks at once), `cluster_spec` (jobs and addresses), `task` (devices, worker and master of one),
`server` (how others reach it), `connect` (from a session's target to its master), `propagation` (which task it is in a
cluster that a session brings).
How tasks start: `engines` (what a cluster asks of each), `addresses` (where they are), `hosts_of_tasks` (their hosts
and cards), `inprocess` (in this process), `process` (in processes of their own, dtflab's or TensorFlow's),
`dask_engine` (on the workers of a Dask cluster) with `dask_task` (one of them) and `dask_worker` (what runs there),
`moving` (names for tasks whose addresses change) and `bringing` (sessions that bring these addresses), `attached`
(elsewhere, before the cluster), `serve` (as a program on any machine), `virtual_time` (in a simulated world).
How they ask each other: `master_stub` (calls of a client become messages), `worker_stub` (those of a master or another
worker), `wire` (the way of one stub to an address), `connection` (what all stubs share on that way), `silence` (peers
that hang).
How they answer: `endpoint` (the services of a task at an address), `answering` (errors and callers that give up),
`master_service` (messages become calls of its master), `worker_service` (and of its worker), `admission` (how many
steps and sessions at most), `incoming` (graphs that came over a wire), `call_events` (what listeners hear of calls).
The wires: `grpc_transport` (gRPC, which TensorFlow knows, too), `handshake` (why TLS fails on it), `certs`
(certificates for TLS), `proof` (of the token, in plain text), `link` (a faster one between processes of dtflab),
`outbox` (what one end of it has to send), `negotiation` (how two of them agree on it), `shared_memory` (large messages
that it need not copy).
What they carry: `tensor_codec` (tensors), `variant_codec` (lists and optional values), `tensor_response` (the answer to
a RecvTensor, a pushed tensor), `status` (errors).
For programs: `clients` (a program of each task), `allocation` (GPUs handed out), `resources_held` (who holds which
variable or queue), `views` (what a task reports of itself), `vitals` (how it is), `stepping` (stepping through a step
in another process), `held_graphs` (the parts of such a step at other tasks).
Faults on purpose: `chaos` (when they begin and end), `chaos_options` (in which words), `faults` (what a task does under
them), `chaos_trace` (a step's trace shows them), `replay` (a run is computed again with another choice).

Design: docs/design/cluster.md
"""
