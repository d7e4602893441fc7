"""Spark jobs: training, scoring, recommending, evaluating."""
