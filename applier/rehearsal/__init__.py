# SPDX-License-Identifier: Apache-2.0
"""Rehearses a plan: simulates many runs with injected faults and random durations. Pure.

Every run is driven through the scheduler that runs plans. Random numbers depend only on the seed,
the number of the run and the action or resource, so that runs with other limits have the same
faults.
"""
