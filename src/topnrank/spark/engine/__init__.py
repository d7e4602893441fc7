"""The Spark engine: one training step as tasks on blocks of users."""
