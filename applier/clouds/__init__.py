"""Clouds that actions work on: each implements ``applier.contracts.Cloud``."""
