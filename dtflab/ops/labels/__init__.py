"""Labels: losses over very many classes, and over sequences of labels.

Pages: `functions` (all that programs call), `range_samplers` (how classes are drawn).
Ops: `candidate_sampling` (a few classes for all), `ctc_loss`, `ctc_decoding` (best class, or a search over paths),
`edit_distance`.
"""
