"""Labels: losses over very many classes, and over sequences of labels.

Pages: `candidate_sampling`, `ctc_decoding`, `ctc_loss`, `edit_distance`, `range_samplers`, `repeated_labels`,
`sampled_losses`.
"""
