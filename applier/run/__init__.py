# SPDX-License-Identifier: Apache-2.0
"""Runs one plan from its claim to its final state."""
