# SPDX-License-Identifier: Apache-2.0
"""``actionplan worker list`` and ``worker drain``: the workers on other machines."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import chain
from typing import Any

from applier.cli.damaged_cells import cells
from applier.cli.verb import ListVerb, Verb
from applier.store.worker_jobs import Worker
from applier.wording import ago, some

#: How many queues and action types a table names.
_NAMED = 3


class WorkerList(ListVerb):
    """List the workers that use this record: queues, types, jobs, last report

    A killed worker stays listed. If it ran on this host, it is shown as gone; otherwise check how
    long ago it was heard of. 'running' is how many of its places are taken.
    """

    EXAMPLES = ("worker list", "worker list -f json")
    NOTHING = "No worker has reported on this record: actions run in the appliers themselves."

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        """Return a row for each worker."""
        workers, damaged = self.readable(self.session.store.workers)
        if parsed_args.formatter != "table":
            rows = (cells(row, _WHOLE_FIELDS, whole=True) for row in damaged)
            return _WHOLE, chain(map(_whole, workers), rows)
        columns = ("name", "queues", "types", "running", "heard of", "version")
        rows = (cells(row, _SHORT_FIELDS, whole=False) for row in damaged)
        return columns, chain(map(_short, workers), rows)


class WorkerDrain(Verb):
    """Tell a worker to take no more jobs; it ends when it has none

    Other workers of its queues take what comes. To have its places back, start the worker again on
    its machine: it registers under a new name.
    """

    EXAMPLES = ("worker drain site-b-1.4711",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a name."""
        parser = super().get_parser(prog_name)
        text = "name of a worker (worker list shows them)"
        parser.add_argument("name", metavar="NAME", help=text)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Record that the worker is to drain; it reads that itself. Raises WorkerNotFound."""
        from applier.operations import workers

        workers.drain(self.session.store, self.operator, parsed_args.name)
        return 0


_WHOLE = (
    *("name", "host", "process", "user", "version", "cloud", "queues", "types"),
    *("running", "places", "draining", "started", "silent_s"),
)


#: The fields of the columns of a damaged worker; None: the column stays empty.
_WHOLE_FIELDS = (
    *("name", "host", "pid", "user", "version", "cloud", None, None),
    *("running", "places", None, "started_at", None),
)
_SHORT_FIELDS = ("name", "queues", "types", "running", "heard_at", "version")


def _whole(worker: Worker) -> tuple[Any, ...]:
    started = worker.started_at
    return (
        *(worker.name, worker.host, worker.pid, worker.user, worker.version, worker.cloud or ""),
        *(list(worker.queues), list(worker.types), worker.running, worker.places),
        *(worker.draining, started.isoformat() if started else "", round(worker.silent_s, 1)),
    )


def _short(worker: Worker) -> tuple[Any, ...]:
    from applier.run.liveness import is_gone

    state = ", gone" if is_gone(worker) else ", draining" if worker.draining else ""
    return (
        worker.name,
        some(worker.queues, _NAMED),
        some(worker.types, _NAMED),
        f"{worker.running} of {worker.places}",
        ago(worker.silent_s) + state,
        worker.version,
    )
