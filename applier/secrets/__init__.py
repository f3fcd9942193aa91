# SPDX-License-Identifier: Apache-2.0
"""Reads the secrets to which parameters refer, on the machine and as the user of the applier."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Any, NamedTuple

from applier.errors import ActionFailed
from applier.secrets.blotting import Blotting
from planner.errors import Path, path_text
from planner.schemas.secrets import accepting, hidden_texts, label, replaced

#: A hidden value in a plan with fewer characters, such as ``1``, is not replaced in output.
SHORTEST_LITERAL = 8
#: A larger file is refused.
MOST_BYTES = 64 * 1024


class SecretText(str):
    """The value of a secret: a text whose ``repr`` is its reference."""

    __slots__ = ("reference",)
    reference: str

    def __repr__(self) -> str:
        return f"<{label(self.reference)}>"


#: For parameters without secrets.
NO_SECRETS = Blotting()


class Resolved(NamedTuple):
    """Parameters with the values of their secrets, and the function that hides these in texts."""

    parameters: Mapping[str, Any]
    blotting: Blotting


def resolve(parameters: Mapping[str, Any], schema: Mapping[str, Any]) -> Resolved:
    """Read the value of each reference, and check it against the schema of the parameters.

    The blotting also replaces values in the plan that the schema hides, from SHORTEST_LITERAL
    characters on. Raises ActionFailed with all references that cannot be used, and why, without
    their values.
    """
    if not parameters:
        return Resolved(parameters, NO_SECRETS)
    values: dict[Path, SecretText] = {}
    wrong: list[str] = []

    def value(path: Path, text: str) -> str:
        kind, _, name = text.partition(" ")
        try:
            found = SecretText(_of_environment(name) if kind == "env" else _of_file(name))
        except (OSError, ValueError) as reason:
            why = reason.strerror if isinstance(reason, OSError) else reason
            wrong.append(_unusable(path, text, why))
            return ""
        found.reference = text
        values[path] = found
        return found

    known = replaced(parameters, value)
    if values and not wrong:
        why = "the action type does not accept its value"
        refused = _refused(parameters, values, schema)
        wrong = [_unusable(path, values[path].reference, why) for path in sorted(refused, key=str)]
    if wrong:
        raise ActionFailed("; ".join(wrong))
    marked = hidden_texts(schema, parameters)
    literal = (text for text in marked if len(text) >= SHORTEST_LITERAL)
    secrets = [*values.values(), *literal]
    return Resolved(known, Blotting(secrets) if secrets else NO_SECRETS)


def _refused(
    parameters: Mapping[str, Any], values: Mapping[Path, SecretText], schema: Mapping[str, Any]
) -> set[Path]:
    """Return the places of references whose values the schema refuses.

    These are all places, where it is not known which value is wrong.
    """
    # Imported here: few plans have secrets.
    from planner.schemas import checking

    # The fast validator accepts no subclasses of str.
    known = replaced(parameters, lambda path, _: str(values[path]))
    if not checking.compiled(schema)(known):
        return set()
    from planner.schemas import schema_errors

    found = schema_errors.places(schema, known) & values.keys()
    # If the parameters have no mistake before the values are known, the values are the mistake.
    return found or set(() if checking.compiled(accepting(schema))(parameters) else values)


def _unusable(path: Path, text: str, why: object) -> str:
    return f"{path_text(path)}: the secret '{text}' cannot be used: {why}"


def shown(value: object) -> str:
    """Return a value as text for messages; for the value of a secret, its reference."""
    return label(value.reference) if isinstance(value, SecretText) else str(value)


def _of_environment(name: str) -> str:
    found = os.environ.get(name)
    if found is None:
        raise ValueError("the environment where it runs has no such variable")
    return _usable(os.fsencode(found))


def _of_file(path: str) -> str:
    # O_NONBLOCK: a pipe without a writer is refused, not waited for.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"the file is larger than {MOST_BYTES // 1024} KiB")
    return _usable(data).removesuffix("\n")


def _usable(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError("it is not text in UTF-8")
    if not text.strip():
        raise ValueError("it is empty")
    return text
