"""Public data sets, the demo data, and synthetic data."""
