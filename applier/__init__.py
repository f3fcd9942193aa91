# SPDX-License-Identifier: Apache-2.0
"""Makes a plan happen: in parallel as far as it allows, with a record that survives a crash."""
