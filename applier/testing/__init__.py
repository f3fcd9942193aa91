# SPDX-License-Identifier: Apache-2.0
"""Test suites that every plugin must pass, and stores and plans for the tests of plugins.

:mod:`.action_suite`, :mod:`.cloud_suite`, :mod:`.engine_suite` and :mod:`.store_suite` are the
suites.
:mod:`.temporary_store` is a store for the tests of a plugin, :mod:`.trials` runs a plan in one,
:mod:`.sample_plans` and :mod:`.random_plans` make plans.
"""
