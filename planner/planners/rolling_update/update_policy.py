# SPDX-License-Identifier: Apache-2.0
"""Reads update policies: the batch size, the minimum in service, the pause between batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from planner.errors import Path, accepted
from planner.planners.rolling_update.conditions import NO_VALUE, UNRESOLVED
from planner.planners.rolling_update.functions import Resolver
from planner.schemas import ranges

#: The longest PauseTime in seconds.
LONGEST_PAUSE_S = 3600
#: How long signals may take where WaitOnResourceSignals has no PauseTime: CloudFormation's PT5M.
SIGNALS_S = 300
#: Values that mean no policy.
_NONE: tuple[Any, ...] = (None, {})
_DURATION = re.compile(r"PT(?:([0-9]{1,18})H)?(?:([0-9]{1,18})M)?(?:([0-9]{1,18})S)?")


class UpdatePolicy(NamedTuple):
    """The values of a policy; the defaults are Heat's.

    ``signals_s``: how long new members may take to signal that they are ready; None without
    signals. ``replaces``: a new group is created whole before the old one goes. ``keeps_size``: a
    size that is the same in both templates is not applied. ``notes`` are sentences for warnings.
    """

    min_in_service: int = 0
    max_batch_size: int = 1
    pause_s: float = 0
    signals_s: float | None = None
    replaces: bool = False
    keeps_size: bool = False
    notes: tuple[str, ...] = ()


#: The policy of a group whose members all change at once.
AT_ONCE = UpdatePolicy(max_batch_size=ranges.MOST)


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


def _flag(value: Any) -> bool:
    if str(value).lower() not in ("true", "false"):
        raise ValueError(f"{value!r} is neither true nor false")
    return str(value).lower() == "true"


def _percent(value: Any) -> int:
    found = whole(value, 0)
    if found > 100:
        raise ValueError(f"{found} is not 0 to 100 percent")
    return found


def _names(value: Any) -> str:
    entries = value if isinstance(value, list) else [value]
    if not all(isinstance(entry, str) for entry in entries):
        raise ValueError(f"{value!r} is not a list of names")
    return ", ".join(entries)


_Readers = Mapping[str, Callable[[Any], Any]]
_HEAT: _Readers = {
    "min_in_service": lambda value: whole(value, 0),
    "max_batch_size": lambda value: whole(value, 1),
    "pause_time": _plain_pause,
}
_DEPLOYMENTS: _Readers = {name: _HEAT[name] for name in ("max_batch_size", "pause_time")}
_ROLLING: _Readers = {
    "MinInstancesInService": lambda value: whole(value, 0),
    "MaxBatchSize": lambda value: whole(value, 1),
    "PauseTime": _iso_pause,
}
#: The fields that CloudFormation has, and Heat has not.
_MORE: _Readers = {
    **_ROLLING,
    "WaitOnResourceSignals": _flag,
    "MinActiveInstancesPercent": _percent,
    "MinSuccessfulInstancesPercent": _percent,
    "SuspendProcesses": _names,
}
_REPLACING, _SCHEDULED = "AutoScalingReplacingUpdate", "AutoScalingScheduledAction"
#: The entries of an UpdatePolicy that may stand beside the one for batches.
_BESIDE: Mapping[str, _Readers] = {
    _REPLACING: {"WillReplace": _flag},
    _SCHEDULED: {"IgnoreUnmodifiedGroupSizeProperties": _flag},
}


def cloudformation(
    resolver: Resolver, written: Any, path: Path, creation: tuple[Any, Path] | None
) -> UpdatePolicy | None:
    """Return the policy in an ``UpdatePolicy`` of CloudFormation; ``creation`` is CreationPolicy.

    Without ``creation``, the group is one of Heat's own, which has only batches. Their entry may
    have any name. Without one, and for a group that is not replaced whole, None is returned; for an
    invalid policy, None with a mistake.
    """
    found = _entries(resolver, written, path)
    if found is UNRESOLVED or found is NO_VALUE or found in _NONE:
        return None
    if not isinstance(found, Mapping):
        resolver.wrong(f"{found!r} is not a mapping with one policy", path)
        return None
    beside = _BESIDE if creation is not None else {}
    rolling = [name for name in found if name not in beside]
    if len(rolling) > 1:
        names = " and ".join(map(repr, rolling))
        resolver.wrong(f"{names}: an UpdatePolicy has one entry, whatever its name", path)
        return None
    fields: dict[str, Any] = {}
    batches = _ROLLING if creation is None else _MORE
    for name, readers in (*((name, batches) for name in rolling), *beside.items()):
        if name in found:
            read = _read(resolver, found[name], (*path, name), readers)
            if read is None:
                return None
            fields |= read
    keeps_size = fields.get("IgnoreUnmodifiedGroupSizeProperties", False)
    if creation is not None and fields.get("WillReplace"):
        return UpdatePolicy(
            max_batch_size=ranges.MOST,
            signals_s=_creation_signals(resolver, *creation),
            replaces=True,
            keeps_size=keeps_size,
            notes=tuple(_notes(fields)),
        )
    if not rolling:
        return None
    signals = fields.get("WaitOnResourceSignals", False)
    pause_s = fields.get("PauseTime", SIGNALS_S if signals else 0)
    return UpdatePolicy(
        min_in_service=fields.get("MinInstancesInService", 0),
        max_batch_size=fields.get("MaxBatchSize", 1),
        pause_s=0 if signals else pause_s,
        signals_s=pause_s if signals else None,
        keeps_size=keeps_size,
        notes=tuple(_notes(fields)),
    )


def _entries(resolver: Resolver, written: Any, path: Path) -> Any:
    """Evaluate a policy; the name of an entry is no function, though Heat has one called so."""
    if isinstance(written, Mapping) and not any(name.startswith("Fn::") for name in written):
        found = {name: resolver.value(entry, (*path, name)) for name, entry in written.items()}
        return {name: value for name, value in found.items() if value is not NO_VALUE}
    return resolver.value(written, path)


def _notes(fields: Mapping[str, Any]) -> Iterator[str]:
    for name in ("MinActiveInstancesPercent", "MinSuccessfulInstancesPercent"):
        if fields.get(name, 100) < 100:
            yield f"{name} is {fields[name]}: the plan is stricter, each new member has to succeed"
    if names := fields.get("SuspendProcesses"):
        yield f"SuspendProcesses: suspend {names} yourself, this plan does not"
    if fields.get("IgnoreUnmodifiedGroupSizeProperties"):
        yield "AutoScalingScheduledAction: a size that both templates have alike is not applied"


def _creation_signals(resolver: Resolver, written: Any, path: Path) -> float | None:
    """Return how long the signals of a CreationPolicy may take; None without any."""
    found = resolver.value(written, path)
    signal = found.get("ResourceSignal") if isinstance(found, Mapping) else None
    if not isinstance(signal, Mapping):
        return None
    seconds = duration_s(str(signal.get("Timeout", "PT5M")))
    if seconds is None:
        text = f"{signal['Timeout']!r} is not a duration: PT#H#M#S is, with whole numbers"
        resolver.wrong(text, (*path, "ResourceSignal", "Timeout"))
    return seconds


def resource_group(
    resolver: Resolver, written: Any, path: Path, *, deploys: bool
) -> UpdatePolicy | None:
    """Return the policy in ``update_policy`` of a resource group: its entry ``rolling_update``.

    Without it, the policy is that of all members at once; ``{}`` has Heat's defaults. ``deploys``:
    it is a group of deployments, whose policy has no minimum. For an invalid policy, None with a
    mistake.
    """
    found = resolver.value(written, path)
    if found is UNRESOLVED or found is NO_VALUE or found in _NONE:
        return AT_ONCE
    if not isinstance(found, Mapping):
        resolver.wrong(f"{found!r} is not a mapping with 'rolling_update'", path)
        return None
    known = ("batch_create", "rolling_update")
    for name in found:
        if name not in known:
            resolver.wrong(f"not a field here; {accepted(name, known)}", (*path, name))
    rolling = found.get("rolling_update")
    if rolling is None:
        return AT_ONCE
    readers = _DEPLOYMENTS if deploys else _HEAT
    return heat(resolver, rolling, (*path, "rolling_update"), readers)


def heat(
    resolver: Resolver, written: Any, path: Path, readers: _Readers = _HEAT
) -> UpdatePolicy | None:
    """Return a policy in Heat's form, with Heat's defaults for what is missing.

    For a value that is not a mapping, None with a mistake.
    """
    found = resolver.value(written, path)
    fields = _read(resolver, {} if found is NO_VALUE else found, path, readers)
    if fields is None:
        return None
    pause_s = fields.pop("pause_time", 0)
    return UpdatePolicy(**fields, pause_s=pause_s)


def _read(resolver: Resolver, entry: Any, path: Path, readers: _Readers) -> dict[str, Any] | None:
    """Return the values of the fields that are set; None, with a mistake, for no mapping."""
    if entry is None or entry is UNRESOLVED:
        entry = {}
    if not isinstance(entry, Mapping):
        resolver.wrong(f"{entry!r} is not a mapping", path)
        return None
    values: dict[str, Any] = {}
    for name, value in entry.items():
        if name not in readers:
            resolver.wrong(f"not a field here; {accepted(name, readers)}", (*path, name))
        elif value is not None and value is not UNRESOLVED:
            try:
                values[name] = readers[name](value)
            except ValueError as reason:
                resolver.wrong(str(reason), (*path, name))
    return values
