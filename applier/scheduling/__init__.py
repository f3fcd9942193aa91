# SPDX-License-Identifier: Apache-2.0
"""Decides what may start next, and what ends without running: pure, no clock, threads or I/O."""
