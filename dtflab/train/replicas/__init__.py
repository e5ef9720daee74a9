"""Replicated training with parameter servers: where variables go, synchronous steps, staleness.

Pages: `device_setter` (variables to the parameter servers), `sync_replicas` (one step of several workers),
`worker_pace` (workers that wait for others), `staleness` (how old each gradient is), `staleness_log` (what came of it).
"""
