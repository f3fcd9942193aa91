# SPDX-License-Identifier: Apache-2.0
"""Deployments: tasks run on the nodes that have their roles, and may depend on any node's tasks."""
