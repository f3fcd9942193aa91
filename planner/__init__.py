"""Turns what should change into an action plan: pure, the same plan for the same problem."""
