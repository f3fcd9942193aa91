# SPDX-License-Identifier: Apache-2.0
"""The texts that some options accept: addresses, the URL of the record, a probe, failing tasks.

No message has the text of an address, which may contain a password.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from oslo_config import cfg, types

WEB, _BROKERS = ("http", "https"), ("amqp", "amqps", "redis", "rediss")


class CheckedText(types.String):
    """Option type: a text for which ``require`` raises no ValueError. An empty text is accepted."""

    def __init__(self, require: Callable[[str], None]) -> None:
        super().__init__()
        self.require = require

    def __call__(self, value: object) -> str:
        """Return the text; raises ValueError if it is refused."""
        text = str(super().__call__(value))
        if text:
            self.require(text)
        return text


class Webhooks(types.Dict):
    """Option type: addresses by name, ``NAME:URL``. A refused address is named, not shown."""

    def __call__(self, value: Any) -> dict[str, str]:
        """Return the addresses by name; raises one ValueError that names all invalid ones."""
        found: dict[str, str] = super().__call__(value)
        wrong = [name for name, address in found.items() if not is_url(address, WEB)]
        if wrong:
            accepted = "NAME:http://... or NAME:https://..., with a name of your choice"
            raise ValueError(f"{', '.join(wrong)}: accepted: {accepted}")
        return found


def shown_probe(probe: str) -> str:
    """Return what is shown of a probe: all but password, query and arguments, which may be secret.

    >>> shown_probe("https://me:hunter2@probe.example.org:8443/well?token=hunter2")
    'https://probe.example.org:8443/well'
    >>> shown_probe("/usr/bin/is-well --token hunter2")
    '/usr/bin/is-well'
    """
    if not is_url(probe, WEB):
        return probe.split(maxsplit=1)[0]
    parts = urlsplit(probe)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def explained(opt: cfg.Opt, error: Exception) -> str:
    """Return why oslo.config cannot use a value; of a secret option, without the value."""
    if isinstance(error, RecursionError):
        return "it refers to itself: $NAME stands for the option NAME"
    if isinstance(error, cfg.NoSuchOptError):
        why = "" if opt.secret else f"{error}: "
        return f"{why}$NAME stands for an option, $$ for a dollar sign"
    if opt.secret and not isinstance(opt.type, CheckedText | Webhooks):
        return "its value, which is secret, is not accepted"
    # The part before this in the message is the name of a class.
    return str(error).rpartition("is not valid: ")[2]


def record(text: str) -> None:
    """Raise ValueError if a text is not the URL of a record."""
    # The store needs the same library.
    from applier.errors import StoreError
    from applier.storage import connection

    try:
        connection.parse(text)
    except StoreError:
        raise ValueError(f"it is not {connection.ACCEPTED}") from None


def broker(text: str) -> None:
    """Raise ValueError if a text is not the URL of a message broker."""
    if not is_url(text, _BROKERS):
        raise ValueError(
            "name the message broker, as amqp://USER:PASSWORD@HOST// or redis://HOST, or "
            "amqps:// and rediss:// for TLS"
        )


def probe(text: str) -> None:
    """Raise ValueError if a text is neither an address of HTTP nor a command line."""
    if re.match("[A-Za-z][A-Za-z0-9+.-]*://", text):
        if not is_url(text, WEB):
            raise ValueError("an address begins with http://HOST or https://HOST")
        return
    try:
        words = shlex.split(text)
    except ValueError as reason:
        raise ValueError(f"it is no command line: {reason}") from None
    if not words or not words[0]:
        raise ValueError("it is no command line: it names no program")


def failing_task(text: str) -> None:
    """Raise ValueError if a text is neither a share of all tasks nor NODE/TASK."""
    from applier.errors import ConfigurationError
    from applier.machines import simulated_nodes

    try:
        simulated_nodes.require_failure(text)
    except ConfigurationError as reason:
        raise ValueError(str(reason).removeprefix("[simulated_nodes] failures: ")) from None


def token_kind(text: str) -> None:
    """Raise ValueError if a text cannot be the kind of a token, the part before its colon."""
    if not re.fullmatch(r"[^\s:]+", text):
        raise ValueError(f"{text!r} is no kind of tokens: of region:site-b, the kind is region")


def is_url(text: str, schemes: tuple[str, ...]) -> bool:
    """Return whether a text is a URL with a host and one of these schemes."""
    try:
        parts = urlsplit(text)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of a port
        return False
