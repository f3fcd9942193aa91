# SPDX-License-Identifier: Apache-2.0
"""The machines on which tasks run: this one, one reached over SSH, or a simulated one."""
