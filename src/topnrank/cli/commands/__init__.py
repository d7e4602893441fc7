"""The commands of `topnrank`, one module each."""
