"""Reading files of interactions: CSV, TSV, Parquet, JSON lines, local and remote."""
