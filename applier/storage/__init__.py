"""Where plans are kept: in a database (:mod:`.sql`) or for one process (:mod:`.memory`).

Both keep the promises of :class:`applier.store.Store`, which the suite in
:mod:`applier.testing.stores` checks. ``rules`` holds what is true of every store; ``tables``,
``rows``, ``statements``, ``connection`` and ``schema`` are the parts of the database one.
"""
