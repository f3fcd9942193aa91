# SPDX-License-Identifier: Apache-2.0
"""Tells programs what happens to plans: the events, and where they go."""
