# SPDX-License-Identifier: Apache-2.0
"""Workflow engines, which run the open actions of a plan."""
