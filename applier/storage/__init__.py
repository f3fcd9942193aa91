# SPDX-License-Identifier: Apache-2.0
"""The record in a database: :mod:`.sql` implements :class:`applier.store.Store`.

Its methods are in ``plans``, ``runs`` and ``figures``. ``claims``, ``transitions`` and
``references`` decide which calls are refused. ``changes`` writes changes of state, ``rows``
converts between objects and rows. ``statements`` and ``action_statements`` define the SQL
statements; ``compiled`` compiles them. ``database`` opens the database and repeats transactions,
``transactions`` runs one on a connection of ``idle``. ``urls`` parses URLs, ``connection`` makes
engines from them. ``tables`` defines the tables, ``schema_version`` upgrades them. ``refusals``
classifies the errors of drivers.
"""
