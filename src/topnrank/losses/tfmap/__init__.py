"""TFMAP: smoothed average precision."""
