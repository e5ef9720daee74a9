"""Sessions that prepare their model and survive the loss of a task, with their hooks and threads.

Pages: `basic_loops`, `coordinator`, `hook_timer`, `hooks`, `monitored_session`, `recording_hooks`, `scaffold`,
`session_creator`, `session_manager`, `session_run_hook`, `supervisor`, `supervisor_threads`, `wrapped_session`.
"""
