"""Labels: losses over very many classes, and over sequences of labels.

Programs: `functions` (nce_loss, sampled_softmax_loss, ctc_loss, …).
Ops: `candidate_sampling` (a few classes for all), `range_samplers` (how they are drawn), `ctc_loss` (how unlikely a
sequence of labels is), `ctc_decoding` (best class, or a search over paths), `edit_distance` (steps from one sequence to
another).
"""
