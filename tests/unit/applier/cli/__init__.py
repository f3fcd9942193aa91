# SPDX-License-Identifier: Apache-2.0
"""A package, so that its conftest has a name of its own."""
