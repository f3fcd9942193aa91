# SPDX-License-Identifier: Apache-2.0
"""Metrics for Prometheus, of the record and of processes that run plans, and traces of runs."""
