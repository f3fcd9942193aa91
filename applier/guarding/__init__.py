# SPDX-License-Identifier: Apache-2.0
"""Guards: decide whether a plan may run, by its own demands and those of the configuration."""
