"""Estimators and Models of `pyspark.ml`."""
