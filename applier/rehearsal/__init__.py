# SPDX-License-Identifier: Apache-2.0
"""Rehearses a plan: simulates many runs with injected faults and durations at random. Pure.

Every run is driven through the scheduler that runs plans. What is at random depends only on the
seed, the number of the run and the action, so that two settings meet the same faults.
"""
