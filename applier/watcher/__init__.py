# SPDX-License-Identifier: Apache-2.0
"""ActionPlan inside OpenStack Watcher: a planner and a workflow engine for Watcher's own services.

Watcher loads :mod:`applier.watcher.planner` and :mod:`applier.watcher.engine` by the name
``actionplan``, and keeps its database, API, client and action plugins. Nothing else of the product
imports Watcher.
"""
