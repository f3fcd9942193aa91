# SPDX-License-Identifier: Apache-2.0
"""The planners that are part of ActionPlan, and the code that they share."""
