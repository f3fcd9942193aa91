"""Runs one plan from its claim to its final state."""
