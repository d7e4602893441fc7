"""The paper's experiments: its numbers, its settings, and both run again."""
