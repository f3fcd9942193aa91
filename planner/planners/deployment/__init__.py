# SPDX-License-Identifier: Apache-2.0
"""Deployments: tasks that land on nodes by their roles, and wait for tasks on any node."""
