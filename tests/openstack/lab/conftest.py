# SPDX-License-Identifier: Apache-2.0
"""The programs here are for the Pythons of the environments: pytest does not read them."""

collect_ignore_glob = ["*.py"]
