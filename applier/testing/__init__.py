# SPDX-License-Identifier: Apache-2.0
"""Test suites for plugins of action types and clouds, and stores and plans for their tests.

:mod:`.action_suite` and :mod:`.cloud_suite` are the suites.
:mod:`.temporary_store` is a store for the tests of a plugin, :mod:`.trials` runs a plan in one,
:mod:`.sample_plans` and :mod:`.random_plans` make plans.
"""
