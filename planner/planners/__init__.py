# SPDX-License-Identifier: Apache-2.0
"""The planners that come with the product."""
