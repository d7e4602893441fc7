"""BPR and WARP: losses of sampled pairs."""
