# SPDX-License-Identifier: Apache-2.0
"""What differs between two plans: actions, links, and the fields that change what a run does."""
