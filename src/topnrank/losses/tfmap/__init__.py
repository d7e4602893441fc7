"""TFMAP: smoothed average precision."""

from topnrank.losses.tfmap.reference import SmoothAP

__all__ = ["SmoothAP"]
