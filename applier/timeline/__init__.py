# SPDX-License-Identifier: Apache-2.0
"""Timelines: when the actions of a plan ran or will run, and why they waited, as a picture."""
