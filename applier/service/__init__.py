# SPDX-License-Identifier: Apache-2.0
"""The applier as a service: takes plans from the store and runs them until it is told to end."""
