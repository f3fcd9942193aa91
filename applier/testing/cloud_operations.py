# SPDX-License-Identifier: Apache-2.0
"""The sample of a cloud that the checks change, and the operations that they try on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pytest

from applier.contracts import Print, StopSignal
from applier.contracts.clouds import Cloud
from applier.errors import ActionFailed

#: The names of all operations.
NAMES = (
    *("live_migrate", "cold_migrate", "resize", "stop", "shelve", "create", "delete"),
    *("service", "power", "suspend", "volume_migrate", "retype"),
)
#: The name of the instance that the operation ``create`` creates.
NEW = "actionplan-contract"


@dataclass(frozen=True, kw_only=True, slots=True)
class CloudSample:
    """A cloud, and an instance, hosts, flavors and a volume in it that a test may change.

    ``instance`` is ACTIVE on ``host``, and may be moved to ``other_host``, and resized to
    ``other_flavor``. No instance is on ``idle_host``. ``volume`` may be moved to ``other_pool``,
    and changed to ``other_type``. No instance is called ``actionplan-contract``. Fields with a
    default may be omitted if the cloud does not offer the operations that use them.
    """

    cloud: Cloud
    instance: str
    host: str
    other_host: str
    flavor: str
    other_flavor: str
    idle_host: str = ""
    volume: str = ""
    other_pool: str = ""
    other_type: str = ""


class TriedOperation(NamedTuple):
    """An operation: ``do`` runs it to its end, ``is_done`` reads its result from the cloud."""

    do: Callable[[StopSignal, Print], object]
    is_done: Callable[[], bool]


def works(sample: CloudSample) -> Mapping[str, TriedOperation]:
    """Return the operations of a cloud by name; a sample is used for only one of them."""
    cloud, instance, volume = sample.cloud, sample.instance, sample.volume
    return {
        "live_migrate": _move(sample, live=True),
        "cold_migrate": _move(sample, live=False),
        "resize": TriedOperation(
            lambda stop, out: cloud.resize(instance, sample.other_flavor, stop, out),
            lambda: _of(cloud.instance(instance), "flavor") == sample.other_flavor,
        ),
        "stop": _status(sample, "SHUTOFF"),
        "shelve": _status(sample, "SHELVED"),
        "create": TriedOperation(
            lambda stop, out: cloud.create_instance(NEW, {"flavor": sample.flavor}, stop, out),
            lambda: cloud.instance_named(NEW) is not None,
        ),
        "delete": TriedOperation(
            lambda stop, out: cloud.delete_instance(instance, stop, out),
            lambda: cloud.instance(instance) is None,
        ),
        "service": _service(sample, "disabled", "maintenance"),
        "power": _power(sample, "off"),
        "suspend": _power(sample, "suspended"),
        "volume_migrate": TriedOperation(
            lambda stop, out: cloud.migrate_volume(volume, sample.other_pool, None, stop, out),
            lambda: _of(cloud.volume(volume), "pool") == sample.other_pool,
        ),
        "retype": TriedOperation(
            lambda stop, out: cloud.migrate_volume(volume, None, sample.other_type, stop, out),
            lambda: _of(cloud.volume(volume), "type") == sample.other_type,
        ),
    }


def back(sample: CloudSample) -> Mapping[str, TriedOperation]:
    """Return, by the name of an operation, the one that undoes it."""
    return {
        "stop": _status(sample, "ACTIVE"),
        "shelve": _status(sample, "ACTIVE"),
        "service": _service(sample, "enabled", None),
        "power": _power(sample, "on"),
    }


def _of(found: Mapping[str, Any] | None, field: str) -> Any:
    return None if found is None else found[field]


def _move(sample: CloudSample, *, live: bool) -> TriedOperation:
    cloud, instance, host = sample.cloud, sample.instance, sample.other_host
    return TriedOperation(
        lambda stop, out: cloud.migrate(instance, host, live, stop, out),
        lambda: _of(cloud.instance(instance), "host") == host,
    )


def _status(sample: CloudSample, status: str) -> TriedOperation:
    cloud, instance = sample.cloud, sample.instance
    return TriedOperation(
        lambda stop, out: cloud.set_instance_status(instance, status, stop, out),
        lambda: _of(cloud.instance(instance), "status") == status,
    )


def _service(sample: CloudSample, status: str, reason: str | None) -> TriedOperation:
    cloud, host = sample.cloud, sample.host
    return TriedOperation(
        lambda stop, out: cloud.set_service_status(host, status, reason, stop, out),
        lambda: _of(cloud.service(host), "status") == status,
    )


def _power(sample: CloudSample, power: str) -> TriedOperation:
    cloud, host = sample.cloud, sample.idle_host
    return TriedOperation(
        lambda stop, out: cloud.set_host_power(host, power, stop, out),
        lambda: _of(cloud.host(host), "power") == power,
    )


class Offered:
    """Base class of checks that run operations of a cloud."""

    #: The names of the operations that the cloud does not offer.
    LEFT_OUT: ClassVar[frozenset[str]] = frozenset()
    #: Seconds in which each operation must end.
    PATIENCE_S: ClassVar[float] = 120.0

    def require_offered(self, name: str) -> None:
        """Skip the test if the operation is left out."""
        if name in self.LEFT_OUT:
            pytest.skip(f"this cloud does not offer {name}")

    def end_of(self, work: TriedOperation, stop: StopSignal | None = None) -> BaseException | None:
        """Run an operation; return the exception that it raised, None if it returned.

        Fails the test if it does not end in PATIENCE_S seconds.
        """
        return self.ends_of([work], stop)[0]

    def ends_of(
        self, some: list[TriedOperation], stop: StopSignal | None = None
    ) -> list[Exception | None]:
        """Run operations at the same time; return the exception of each, None if it returned.

        The result is in the order of the operations. Fails the test if one does not end in
        PATIENCE_S seconds.
        """
        ends: list[list[Exception | None]] = [[] for _ in some]
        given = stop or threading.Event()
        threads = [
            threading.Thread(target=_note_end, args=(work.do, given, end), daemon=True)
            for work, end in zip(some, ends, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(self.PATIENCE_S)
        if not all(ends):
            pytest.fail(f"still goes on after {self.PATIENCE_S:g} s")
        return [end[0] for end in ends]


def require_refusal(end: BaseException | None) -> None:
    """Fail the test unless ``end`` is an ActionFailed with a message."""
    if not isinstance(end, ActionFailed) or not str(end).strip():
        pytest.fail(f"ended with {end!r}, not with ActionFailed and a sentence")


def _note_end(
    do: Callable[[StopSignal, Callable[[str], None]], object],
    stop: StopSignal,
    end: list[Exception | None],
) -> None:
    said: list[str] = []
    try:
        do(stop, said.append)
        if not all(isinstance(text, str) for text in said):
            raise TypeError(f"its output is no text: {said!r}")
        end.append(None)
    except Exception as error:  # noqa: BLE001 -- the suite judges whatever a plugin raises
        end.append(error)
