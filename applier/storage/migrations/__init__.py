# SPDX-License-Identifier: Apache-2.0
"""How the tables came to be: alembic's environment and one file for each version."""
