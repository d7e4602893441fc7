"""Linear models in closed form: EASE and the neighbor ridge."""
