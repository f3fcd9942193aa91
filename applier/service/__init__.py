# SPDX-License-Identifier: Apache-2.0
"""The applier as a service: takes PENDING plans from the store and runs them."""
