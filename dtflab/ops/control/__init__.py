"""Branches, loops and assertions, and the gradients of loops.

Pages: `assertions`, `case`, `checks`, `cond`, `control_flow`, `control_flow_context`, `control_flow_gradients`,
`critical_section`, `loop_gradients`, `loop_sums`, `stack`, `while_context`, `while_loop`.
"""
