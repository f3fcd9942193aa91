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
    """A destination of events, such as a webhook, a file or a message bus.

    ``name`` is that of its subscription. It must not change: with another name, it is another
    receiver.
    """

    name: str

    def opened(self) -> AbstractContextManager[Deliver]:
        """Return a context manager of the function that delivers one event.

        The function is called inside of the block, with the events in their order. It raises Away
        or EventRefused; the caller handles EventRefused inside of the block. An event is delivered
        only once the block has ended without Away.
        """
