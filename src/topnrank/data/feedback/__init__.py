"""Feedback policies: how ratings and events become weights."""
