# SPDX-License-Identifier: Apache-2.0
"""Figures for Prometheus: what the record holds, and what a process that runs plans knows."""
