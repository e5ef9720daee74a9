"""Replicated training with parameter servers: where variables go, synchronous steps, staleness.

Pages: `device_setter`, `staleness`, `staleness_log`, `sync_replicas`, `worker_pace`.
"""
