"""Labels: losses over very many classes, and over sequences of labels.

Programs: `functions`.
Ops: `candidate_sampling` (a few classes for all) with `range_samplers` (how they are drawn), `ctc_loss`,
`ctc_decoding` (best class, or a search over paths), `edit_distance`.
"""
