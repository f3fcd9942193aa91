# SPDX-License-Identifier: Apache-2.0
"""Output for people: a plan as a table, progress while it runs, the recap at the end."""
