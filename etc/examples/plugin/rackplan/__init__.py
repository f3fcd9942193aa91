# SPDX-License-Identifier: Apache-2.0
"""A planner that finishes one rack before it starts the next, and an action that says so."""
