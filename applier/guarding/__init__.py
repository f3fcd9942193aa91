# SPDX-License-Identifier: Apache-2.0
"""Guards: decide whether a plan may run, by what it and the configuration demand."""
