"""Experiments: comparing, tuning, reproducing the paper, and reporting on it."""
