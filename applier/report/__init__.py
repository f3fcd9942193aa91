# SPDX-License-Identifier: Apache-2.0
"""Reports of plans: one HTML page with what a plan did or is expected to do, and what is left."""
