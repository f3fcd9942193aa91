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
    return {**_of_instance(sample), **_of_hosts(sample), **_of_volume(sample)}


def back(sample: CloudSample) -> Mapping[str, TriedOperation]:
    """Return, by the name of an operation, the one that undoes it."""
    cloud, instance, idle = sample.cloud, sample.instance, sample.idle_host

    def active() -> TriedOperation:
        return TriedOperation(
            lambda stop, out: cloud.set_instance_status(instance, "ACTIVE", stop, out),
            lambda: _of(cloud.instance(instance), "status") == "ACTIVE",
        )

    return {
        "stop": active(),
        "shelve": active(),
        "service": TriedOperation(
            lambda stop, out: cloud.set_service_status(sample.host, "enabled", None, stop, out),
            lambda: _of(cloud.service(sample.host), "status") == "enabled",
        ),
        "power": TriedOperation(
            lambda stop, out: cloud.set_host_power(idle, "on", stop, out),
            lambda: _of(cloud.host(idle), "power") == "on",
        ),
    }


def _of(found: Mapping[str, Any] | None, field: str) -> Any:
    return None if found is None else found[field]


def _of_instance(sample: CloudSample) -> dict[str, TriedOperation]:
    cloud, instance = sample.cloud, sample.instance

    def moved(live: bool) -> TriedOperation:
        return TriedOperation(
            lambda stop, out: cloud.migrate(instance, sample.other_host, live, stop, out),
            lambda: _of(cloud.instance(instance), "host") == sample.other_host,
        )

    def status(new: str) -> TriedOperation:
        return TriedOperation(
            lambda stop, out: cloud.set_instance_status(instance, new, stop, out),
            lambda: _of(cloud.instance(instance), "status") == new,
        )

    return {
        "live_migrate": moved(live=True),
        "cold_migrate": moved(live=False),
        "resize": TriedOperation(
            lambda stop, out: cloud.resize(instance, sample.other_flavor, stop, out),
            lambda: _of(cloud.instance(instance), "flavor") == sample.other_flavor,
        ),
        "stop": status("SHUTOFF"),
        "shelve": status("SHELVED"),
        "create": TriedOperation(
            lambda stop, out: cloud.create_instance(NEW, {"flavor": sample.flavor}, stop, out),
            lambda: cloud.instance_named(NEW) is not None,
        ),
        "delete": TriedOperation(
            lambda stop, out: cloud.delete_instance(instance, stop, out),
            lambda: cloud.instance(instance) is None,
        ),
    }


def _of_hosts(sample: CloudSample) -> dict[str, TriedOperation]:
    cloud, idle = sample.cloud, sample.idle_host

    def power(new: str) -> TriedOperation:
        return TriedOperation(
            lambda stop, out: cloud.set_host_power(idle, new, stop, out),
            lambda: _of(cloud.host(idle), "power") == new,
        )

    return {
        "service": TriedOperation(
            lambda stop, out: cloud.set_service_status(
                sample.host, "disabled", "maintenance", stop, out
            ),
            lambda: _of(cloud.service(sample.host), "status") == "disabled",
        ),
        "power": power("off"),
        "suspend": power("suspended"),
    }


def _of_volume(sample: CloudSample) -> dict[str, TriedOperation]:
    cloud, volume = sample.cloud, sample.volume
    return {
        "volume_migrate": TriedOperation(
            lambda stop, out: cloud.migrate_volume(volume, sample.other_pool, None, stop, out),
            lambda: _of(cloud.volume(volume), "pool") == sample.other_pool,
        ),
        "retype": TriedOperation(
            lambda stop, out: cloud.migrate_volume(volume, None, sample.other_type, stop, out),
            lambda: _of(cloud.volume(volume), "type") == sample.other_type,
        ),
    }


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
