# SPDX-License-Identifier: Apache-2.0
"""Reports of plans: one page that says what a plan did or will do, why, and what is left."""
