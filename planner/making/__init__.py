# SPDX-License-Identifier: Apache-2.0
"""Makes plans from documents: planner, options, checks; reads saved plans."""
