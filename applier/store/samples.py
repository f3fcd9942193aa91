# SPDX-License-Identifier: Apache-2.0
"""The durations of earlier runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

#: How many durations of one action type are used by default: the latest ones.
MOST = 500
_NODE = "node:"


class Sample(NamedTuple):
    """How many seconds a successful attempt took, and the size and node of its action, if known.

    ``size`` is as returned by :func:`size_of`, ``node`` as returned by :func:`node_of`.
    ``imported`` is true if the duration was imported from another record.
    """

    seconds: float
    size: str | None = None
    node: str | None = None
    imported: bool = False


def node_of(tokens: Iterable[str]) -> str | None:
    """Return the first node among the tokens of an action: for a migration, the host it leaves.

    >>> node_of(("type:migrate", "instance:web-1", "node:compute-1", "node:compute-2"))
    'compute-1'
    """
    return next((t.removeprefix(_NODE) for t in tokens if t.startswith(_NODE)), None)


def size_of(parameters: Mapping[str, Any]) -> str | None:
    """Return the flavor among the parameters of an action: that which it creates or resizes to.

    >>> size_of({"resource_id": "web-1", "flavor": "m1.large"})
    'm1.large'
    """
    flavor = parameters.get("flavor")
    return flavor if isinstance(flavor, str) else None
