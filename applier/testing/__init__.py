# SPDX-License-Identifier: Apache-2.0
"""Test suites of plugins: :mod:`.action_suite` of action types, :mod:`.cloud_suite` of clouds."""
