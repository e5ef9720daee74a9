"""All-reduce between workers without parameter servers.

Pages: `all_reduce`, `channel`, `group`, `hook`, `meeting`, `optimizer`, `schedule`.
"""
