"""Sessions that prepare their model and survive the loss of a task, with their hooks and threads.

Pages: `scaffold` (what a program needs next to its model), `session_manager` (makes the model ready),
`session_creator` (how a program comes to its session), `session_run_hook` (code around each run), `hooks` (stop, log,
feed; when a hook acts), `recording_hooks` (hooks that write files), `wrapped_session` (the layers of a monitored
session), `monitored_session` (all of that together), `supervisor` (the older way), `supervisor_threads` (what runs next
to it).
"""
