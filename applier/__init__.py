# SPDX-License-Identifier: Apache-2.0
"""Runs action plans, independent actions in parallel, and commits each state to a store."""
