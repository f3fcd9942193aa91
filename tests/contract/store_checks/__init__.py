# SPDX-License-Identifier: Apache-2.0
"""The parts of :mod:`store_suite`, by what the methods of a store do."""
