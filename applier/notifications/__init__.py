# SPDX-License-Identifier: Apache-2.0
"""Events of plans for other programs: their schema, JSON Lines, Watcher's notifications."""
