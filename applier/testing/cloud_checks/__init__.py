# SPDX-License-Identifier: Apache-2.0
"""The parts of :mod:`applier.testing.cloud_suite`, by what the methods of a cloud do."""
