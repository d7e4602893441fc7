"""Models that know the order of a user's items: directed counts, the next-item ridge, and the control of item ids."""
