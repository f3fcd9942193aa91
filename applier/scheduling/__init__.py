# SPDX-License-Identifier: Apache-2.0
"""Decides which actions start and which end without running; without clock, threads or I/O."""
