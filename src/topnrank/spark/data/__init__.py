"""DataFrames and files turned into blocks of users."""
