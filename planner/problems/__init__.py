# SPDX-License-Identifier: Apache-2.0
"""Makes solution documents, which any planner of solutions reads, from the facts of a cloud."""
