# SPDX-License-Identifier: Apache-2.0
"""The interface of receivers of events, and how a delivery fails."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from applier.notifications.schema import Event

#: Delivers one event, or raises an error.
Deliver = Callable[[Event], None]


class EventRefused(Exception):
    """The receiver has refused this event; it may accept others. The message is its answer."""


class Away(Exception):
    """The receiver cannot be reached at present, or does not answer; the message says why."""


class Receiver(Protocol):
    """Somebody to whom events are delivered.

    ``name`` is that of its subscription. It must not change: with another name, it is another
    receiver.
    """

    name: str

    def opened(self) -> AbstractContextManager[Deliver]:
        """Return what delivers events, in their order, in a block.

        An event is delivered once the block has ended without Away. What delivers raises Away or
        EventRefused; the caller handles EventRefused inside of the block.
        """
