# SPDX-License-Identifier: Apache-2.0
"""Nothing here is a test, and the library that it needs is an extra of its own."""

collect_ignore_glob = ["*.py"]
