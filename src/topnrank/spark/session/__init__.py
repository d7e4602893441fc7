"""topnrank on Apache Spark."""
