# SPDX-License-Identifier: Apache-2.0
"""What may happen to appliers while they run a plan: each trouble is a function of the site."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import server_troubles
import world
from processes import HEARTBEAT_S, Site

from applier.storage.sql_store import SqlStore

#: A claim is lost after so many seconds without a heartbeat.
SILENCE_S = 6 * HEARTBEAT_S
#: How many appliers come at once, and how many actions each of their plans has.
CROWD, SMALL_SIZE = 64, 4


def kill(site: Site) -> None:
    """Kill an applier at once."""
    applier = site.victim()
    if applier:
        applier.signal(signal.SIGKILL)


def freeze(site: Site) -> None:
    """Stop an applier until after its claim is lost; it may come back a moment before that."""
    applier = site.victim()
    if applier and not any(other.thaws_at for other in site.appliers if other.lives):
        applier.thaws_at = time.monotonic() + site.chance.uniform(0.5, 3) * SILENCE_S
        applier.signal(signal.SIGSTOP)


def starve(site: Site) -> None:
    """Let the applier that runs the plan have no more files, or no more threads, for a while."""
    claimant = site.read(lambda store: store.claimant(site.plan))
    for applier in site.appliers:
        if claimant and not applier.thaws_at and applier.has(claimant.pid):
            applier.thaws_at = time.monotonic() + site.chance.uniform(0.5, 3) * SILENCE_S
            applier.starve(claimant.pid, site.chance)


def crowd(site: Site) -> None:
    """Let many appliers at once run a small plan each, beside those of the plan."""
    if site.crowd:
        return
    for number in range(CROWD):
        file = site.folder / f"{site.plan}-{number}"
        plan = world.plan_of(site.chance.randrange(10**9), SMALL_SIZE, file, world.SHORT_S)
        site.read(partial(SqlStore.save_plan, plan=plan))
        site.start("actionplan", "apply", plan.uuid, "--yes")
        site.crowd.append((site.appliers[-1], plan, file))


def race(site: Site) -> None:
    """Let a verb and the services want the plan at the same time."""
    verb = site.chance.choice(("apply", "resume", "start"))
    site.verb(verb, site.plan, *([] if verb == "start" else ["--yes"]))


def pause(site: Site) -> None:
    """Pause the plan; the next trouble of this kind, or a race, resumes it."""
    site.verb(*site.chance.choice((("stop", "--pause"), ("resume",))), site.plan)


def look(site: Site) -> None:
    """Read the record by a verb."""
    verb = site.chance.choice(("list", "show"))
    site.verb(verb, *([] if verb == "list" else [site.plan]))


def cut(site: Site) -> None:
    """Cut all connections to the server of the record."""
    server_troubles.cut(site.url)


def deadlock(site: Site) -> None:
    """Lock what appliers change, in another order than they do."""
    for _ in range(site.chance.randint(1, 20)):
        server_troubles.deadlock(site.url, site.plan, site.chance)


def crash(site: Site) -> None:
    """Stop the server of the record as a loss of power would, and start it again."""
    if site.server:
        site.server.stop()
        time.sleep(site.chance.uniform(0, 3))
        site.server.start()


def full(site: Site) -> None:
    """Fill the disk of the record for a while."""
    filler = site.folder / "record" / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    time.sleep(site.chance.uniform(0, 3))
    filler.unlink(missing_ok=True)


ANYWHERE: dict[str, Callable[[Site], None]] = {
    "kill": kill,
    "freeze": freeze,
    "race": race,
    "pause": pause,
}
#: Troubles that are a campaign of their own.
APART = {"starve": starve, "crowd": crowd, "look": look}
#: Troubles that need a certain record: a server, a server of one's own, a small disk.
ON_SERVERS = {"cut": cut, "deadlock": deadlock}
TROUBLES = {**ANYWHERE, **APART, **ON_SERVERS, "crash": crash, "full": full}
#: Not events, but the state of a whole campaign: appliers whose clocks or versions are apart.
CLOCKS, VERSIONS = "clocks", "versions"
STATES = (CLOCKS, VERSIONS)
OWN, SMALL = "own", "small"
