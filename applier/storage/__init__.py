# SPDX-License-Identifier: Apache-2.0
"""Where plans are kept: in a database (:mod:`.sql`), and for tests in memory (:mod:`.memory`).

Both keep the promises of :class:`applier.store.Store`, which the suite in
:mod:`applier.testing.stores` checks. ``rules`` holds what is true of every store; ``tables``,
``rows``, ``statements``, ``compiled``, ``transactions``, ``connection``, ``refusals`` and
``schema_version`` are the parts of the database one.
"""
