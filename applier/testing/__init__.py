"""Suites that every implementation of a contract has to pass, ours and those of third parties."""
