# SPDX-License-Identifier: Apache-2.0
"""What may happen to appliers, workers, their servers and the links between them.

Each trouble returns whether it found something to be in trouble.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial

from fleet_site import APPLIER, WORKER, FleetSite, Machine


def kill(program: str, site: FleetSite) -> bool:
    """Kill a service at once; the machine starts it again."""
    machine = _one(program, site)
    if machine is None or machine.service is None:
        return False
    machine.was_killed = True
    machine.service.signal(signal.SIGKILL)
    return True


def freeze(program: str, site: FleetSite) -> bool:
    """Stop a service, and let it go on before or after its lease or claim is lost."""
    machine = _one(program, site)
    if machine is None or machine.service is None:
        return False
    machine.service.signal(signal.SIGSTOP)
    thaw = partial(machine.service.signal, signal.SIGCONT)
    site.trouble(machine.name, site.chance.uniform(0.3, 3) * site.lease_s, thaw)
    return True


def kill_server(kind: str, site: FleetSite) -> bool:
    """Kill a server, and start it again after a while."""
    if kind in site.troubled:
        return False
    server = site.servers[kind]
    server.kill()
    site.trouble(kind, site.chance.uniform(0, 1.5) * site.lease_s, server.start)
    return True


def freeze_server(kind: str, site: FleetSite) -> bool:
    """Stop all processes of a server for a while."""
    if kind in site.troubled:
        return False
    server = site.servers[kind]
    server.signal(signal.SIGSTOP)
    seconds = site.chance.uniform(0.2, 1.5) * site.lease_s
    site.trouble(kind, seconds, partial(server.signal, signal.SIGCONT))
    return True


def cut(site: FleetSite) -> bool:
    """Cut the link between a machine and a server, with or without a sign of it."""
    machine, kind = site.chance.choice(site.machines), site.chance.choice(tuple(site.servers))
    name, link = f"{machine.name} to {kind}", machine.links[kind]
    if name in site.troubled:
        return False
    site.chance.choice((link.go_away, link.hang))()
    site.trouble(name, site.chance.uniform(0.2, 2) * site.lease_s, link.come_back)
    return True


def vanish(site: FleetSite) -> bool:
    """Pull the cable of a machine for a while: neither end hears of it."""
    whole = [m for m in site.machines if m.cable is not None and m.cable.here not in site.troubled]
    if not whole:
        return False
    cable = site.chance.choice(whole).cable
    assert cable is not None
    cable.pull()
    site.trouble(cable.here, site.chance.uniform(0.3, 3) * site.lease_s, cable.plug_in)
    return True


def _one(program: str, site: FleetSite) -> Machine | None:
    found = site.of(program)
    return site.chance.choice(found) if found else None


TROUBLES: dict[str, Callable[[FleetSite], bool]] = {
    "kill-worker": partial(kill, WORKER),
    "kill-applier": partial(kill, APPLIER),
    "kill-broker": partial(kill_server, "broker"),
    "kill-record": partial(kill_server, "record"),
    "freeze-worker": partial(freeze, WORKER),
    "freeze-applier": partial(freeze, APPLIER),
    "freeze-broker": partial(freeze_server, "broker"),
    "freeze-record": partial(freeze_server, "record"),
    "cut": cut,
}
#: Only for machines in namespaces.
CABLES = {"vanish": vanish}
#: Not an event, but the state of the whole campaign: services whose clocks are apart.
CLOCKS = "clocks"
