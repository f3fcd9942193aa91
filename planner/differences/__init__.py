# SPDX-License-Identifier: Apache-2.0
"""The differences between two plans: actions, links, and the fields that a digest covers."""
