# SPDX-License-Identifier: Apache-2.0
"""The record in a database: :class:`applier.storage.sql.SqlStore`.

Its methods are in ``plans``, ``plan_changes``, ``pages``, ``runs``, ``worker_jobs`` and others.
``claims``, ``transitions`` and ``references`` decide which calls are refused. ``changes`` writes
changes of state, ``rows`` converts between objects and rows. ``statements`` and the modules
``*_statements`` define the SQL statements; ``compiled`` compiles them. ``database`` opens the
database and repeats transactions, ``transactions`` runs one on a connection of ``idle``.
``connection`` parses URLs and makes engines from them. ``tables`` defines the tables,
``schema_version`` upgrades them. ``refusals`` classifies the errors of drivers.
"""
