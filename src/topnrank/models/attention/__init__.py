"""SequenceRank: a causal transformer over the ordered history, with closed-form terms of order beside it in one score."""
