"""BPR and WARP: losses of sampled pairs."""

from topnrank.losses.pairwise.reference import PairwiseLogistic, WarpHinge

__all__ = ["PairwiseLogistic", "WarpHinge"]
