# SPDX-License-Identifier: Apache-2.0
"""Writes what happens to a plan into its store, and tells the listeners after each commit."""
