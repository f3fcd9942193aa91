# SPDX-License-Identifier: Apache-2.0
"""The record in a database: :class:`applier.storage.sql.SqlStore`.

Its methods are in ``plans``, ``plan_changes``, ``pages``, ``runs``, ``worker_jobs`` and others.
``transitions`` and ``references`` decide which calls are refused. ``state_changes`` writes changes
of state, ``rows`` and ``event_rows`` convert between objects and rows. ``statements`` and the
modules ``*_statements`` define the SQL statements, ``dialects`` adapts them to a kind of database.
``database`` opens the database and repeats transactions, ``transactions`` runs one. ``connection``
parses URLs and opens connections. ``schema`` has the tables, ``schema_version`` upgrades them.
``refusals`` classifies the errors of drivers. ``damage`` finds invalid values.
"""
