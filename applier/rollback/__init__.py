# SPDX-License-Identifier: Apache-2.0
"""Makes the plan that undoes the actions of another plan: pure."""
