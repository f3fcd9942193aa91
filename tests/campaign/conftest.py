# SPDX-License-Identifier: Apache-2.0
"""Nothing here is a test: campaigns are programs."""

collect_ignore_glob = ["*.py"]
