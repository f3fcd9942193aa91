# SPDX-License-Identifier: Apache-2.0
"""The record in a database: :mod:`.sql` keeps the promises of :class:`applier.store.Store`.

``plans`` and ``runs`` are its two halves. ``claims``, ``transitions`` and ``references`` decide
what is refused, ``changes`` writes changes of state, ``rows`` converts, ``statements`` are run by
``compiled``, ``transactions`` and ``database``, on the ``connection`` of one of the ``urls``.
``tables`` and ``schema_version`` are about the tables, ``refusals`` about errors of drivers.
"""
