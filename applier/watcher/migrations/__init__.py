# SPDX-License-Identifier: Apache-2.0
"""The migrations of ActionPlan's tables: alembic's environment, and one file for each version."""
