# SPDX-License-Identifier: Apache-2.0
"""Writes the states of a running plan to its store, and notifies listeners after each commit."""
