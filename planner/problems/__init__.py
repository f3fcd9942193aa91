# SPDX-License-Identifier: Apache-2.0
"""Finds what should be done from facts alone, as documents that any planner reads."""
