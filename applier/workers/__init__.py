# SPDX-License-Identifier: Apache-2.0
"""Runs the actions of plans as jobs at workers, which write their results into the record."""
