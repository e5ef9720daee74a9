"""All-reduce between workers without parameter servers.

Pages: `schedule` (who sends which piece to whom), `all_reduce` (between devices of one graph), `group` (workers with
graphs of their own), `meeting` (how they find each other), `channel` (how pieces get from graph to graph), `optimizer`
(one step of all workers), `hook` (what their sessions do around it).
"""
