# SPDX-License-Identifier: Apache-2.0
"""Reads update policies: the batch size, the minimum in service, the pause between batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from planner.errors import Path, accepted
from planner.planners.rolling_update.functions import UNRESOLVED, Resolver
from planner.schemas import ranges

#: The longest PauseTime in seconds.
LONGEST_PAUSE_S = 3600
#: Values that mean no policy.
_NONE: tuple[Any, ...] = (None, {})
_DURATION = re.compile(r"PT(?:([0-9]{1,18})H)?(?:([0-9]{1,18})M)?(?:([0-9]{1,18})S)?")


class UpdatePolicy(NamedTuple):
    """The values of a policy; the defaults are Heat's."""

    min_in_service: int = 0
    max_batch_size: int = 1
    pause_s: float = 0


def duration_s(text: str) -> int | None:
    """Return the seconds of a duration ``PT#H#M#S``; None for any other text.

    >>> duration_s("PT1M30S"), duration_s("PT"), duration_s("P1D"), duration_s("PT1.5S")
    (90, 0, None, None)
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def whole(value: Any, least: int) -> int:
    """Read an integer, or its text, that is ``least`` or more; raises ValueError.

    >>> whole("5", 1)
    5
    """
    found = value
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value):
        found = int(value)
    if isinstance(found, bool) or not isinstance(found, int):
        raise ValueError(f"{value!r} is not a whole number")
    if found < least:
        raise ValueError(f"{found} is less than {least}")
    if found > ranges.MOST:
        raise ValueError(f"{found} is more than {ranges.MOST}")
    return found


def _iso_pause(value: Any) -> float:
    found = duration_s(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{value!r} is not a duration: PT#H#M#S is, with whole numbers")
    if found > LONGEST_PAUSE_S:
        raise ValueError(f"{value} is {found} s: at most {LONGEST_PAUSE_S} s (PT1H)")
    return found


def _plain_pause(value: Any) -> float:
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number of seconds")
    if not ranges.is_duration(value):
        raise ValueError(f"{value!r} is not 0 to {ranges.LONGEST_S} seconds")
    return value


_Readers = Mapping[str, tuple[str, Callable[[Any], float]]]
_CLOUDFORMATION: _Readers = {
    "MinInstancesInService": ("min_in_service", lambda value: whole(value, 0)),
    "MaxBatchSize": ("max_batch_size", lambda value: whole(value, 1)),
    "PauseTime": ("pause_s", _iso_pause),
}
_HEAT: _Readers = {
    "min_in_service": ("min_in_service", lambda value: whole(value, 0)),
    "max_batch_size": ("max_batch_size", lambda value: whole(value, 1)),
    "pause_time": ("pause_s", _plain_pause),
}


def one_entry(resolver: Resolver, found: Any, path: Path) -> UpdatePolicy | None:
    """Return the policy in an ``UpdatePolicy`` of CloudFormation: its only entry, of any name.

    For None and ``{}``, None is returned; for an invalid one, None with a mistake.
    """
    if found in _NONE:
        return None
    if not isinstance(found, Mapping):
        resolver.wrong(f"{found!r} is not a mapping with one policy", path)
        return None
    if len(found) > 1:
        names = " and ".join(map(repr, found))
        resolver.wrong(f"{names}: an UpdatePolicy has one entry, whatever its name", path)
        return None
    ((name, entry),) = found.items()
    return _read(resolver, entry, (*path, name), _CLOUDFORMATION)


def of_resource_group(resolver: Resolver, found: Any, path: Path) -> UpdatePolicy | None:
    """Return the policy in ``update_policy`` of a resource group: its entry ``rolling_update``.

    For None and ``{}``, None is returned; for an invalid one, None with a mistake.
    """
    if found in _NONE:
        return None
    if not isinstance(found, Mapping):
        resolver.wrong(f"{found!r} is not a mapping with 'rolling_update'", path)
        return None
    known = ("batch_create", "rolling_update")
    for name in found:
        if name not in known:
            resolver.wrong(f"not a field here; {accepted(name, known)}", (*path, name))
    return heat(resolver, found.get("rolling_update"), (*path, "rolling_update"))


def heat(resolver: Resolver, found: Any, path: Path) -> UpdatePolicy | None:
    """Return a policy in Heat's form.

    For None and ``{}``, None is returned; for a value that is not a mapping, None with a mistake.
    """
    return None if found in _NONE else _read(resolver, found, path, _HEAT)


def _read(resolver: Resolver, entry: Any, path: Path, readers: _Readers) -> UpdatePolicy | None:
    if entry is None:
        entry = {}
    if not isinstance(entry, Mapping):
        resolver.wrong(f"{entry!r} is not a mapping", path)
        return None
    values: dict[str, Any] = {}
    for name, written in entry.items():
        if name not in readers:
            resolver.wrong(f"not a field here; {accepted(name, readers)}", (*path, name))
            continue
        value = resolver.value(written, (*path, name))
        field, reader = readers[name]
        if value is None or value is UNRESOLVED:
            continue
        try:
            values[field] = reader(value)
        except ValueError as reason:
            resolver.wrong(str(reason), (*path, name))
    return UpdatePolicy(**values)
