# SPDX-License-Identifier: Apache-2.0
"""The record in a database: :class:`applier.storage.sql_store.SqlStore`.

Its methods are in ``plans``, ``plan_changes``, ``pages``, ``runs``, ``worker_jobs`` and others.
``state_refusals`` decides which calls are refused. ``state_changes`` writes changes of state,
``rows`` and ``event_rows`` convert between objects and rows. The SQL is in ``plans.sql``,
``events.sql`` and ``workers.sql``, which ``statements`` reads and adapts to a kind of database;
``list_statements`` makes that of lists. ``database`` opens the database and repeats transactions,
``transactions`` runs one. ``connection`` parses URLs and opens connections. ``schema`` has the
tables, ``schema_version`` upgrades them. ``database_errors`` classifies the errors of drivers.
``damage`` finds invalid values.
"""
