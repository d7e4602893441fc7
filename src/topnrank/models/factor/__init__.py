"""Models trained by gradient steps: the base class, preparing data, one training run, fitted state, new users."""
