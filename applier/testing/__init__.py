# SPDX-License-Identifier: Apache-2.0
"""Tests that every plugin must pass, for its authors to run, and what such tests need.

:mod:`.action_suite`, :mod:`.engine_suite` and :mod:`.store_suite` are the suites.
:mod:`.temporary_store` is a store for the tests of a plugin, :mod:`.trials` runs a plan in one,
:mod:`.sample_plans` and :mod:`.random_plans` make plans.
"""
