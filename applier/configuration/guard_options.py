# SPDX-License-Identifier: Apache-2.0
"""The options of ``[watcher_applier]`` for guards: what must hold before a plan runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oslo_config import cfg

from applier.configuration import option_types
from applier.configuration.option_types import CheckedText
from planner import guards
from planner.guards import blast_radius, failure_budget, windows
from planner.guards.blast_radius import Bounds
from planner.making.options import ReadBy, pairs_text
from planner.schemas import ranges

if TYPE_CHECKING:
    from applier.guarding.guard import Guard


def _bounds(value: str | Bounds) -> Bounds:
    return value if isinstance(value, tuple) else blast_radius.bounds(value)


def _bounds_text(value: Bounds) -> str:
    pairs = blast_radius.to_dict(value).items()
    return ", ".join(
        f"{kind}={one}" for kind, n in pairs for one in (n if isinstance(n, list) else [n])
    )


_APPROVALS_FOR = ReadBy("approvals of some plans", guards.approvals_for, pairs_text)
_BLAST_RADIUS = ReadBy("bounds", _bounds, _bounds_text)
_WINDOWS = ReadBy("windows", windows.windows, ", ".join)
_BUDGETS = ReadBy("failure budgets", failure_budget.budgets, ", ".join)

GUARD_OPTIONS = (
    cfg.IntOpt(
        "approvals",
        default=0,
        min=0,
        max=guards.MOST_APPROVALS,
        help="How many people must approve a plan before it may run: 'actionplan approve'. "
        "A document may demand more.",
    ),
    cfg.Opt(
        "approvals_for",
        type=_APPROVALS_FOR,
        sample_default="planner:events=1, size:100=2, label:prod=1",
        help="More approvals of some plans: planner:NAME=N for those of a planner, size:ACTIONS=N "
        "for those of so many actions or more, label:LABEL=N for those whose document has this "
        "label in its part 'guards'. The largest number that applies to a plan holds.",
    ),
    cfg.BoolOpt(
        "approval_by_another",
        default=False,
        help="Whether the approval of the user who made a plan does not count.",
    ),
    cfg.FloatOpt(
        "approval_max_age_s",
        min=1,
        max=ranges.LONGEST_S,
        sample_default=86400,
        help="How old the facts of a plan may be when it is first started, in seconds; where it "
        "does not say when they were read, the plan itself. Default: of any age.",
    ),
    cfg.Opt(
        "blast_radius",
        type=_BLAST_RADIUS,
        sample_default="hosts=20%, instances=50, rack=50%, group=1",
        help="How much of the cloud one plan may touch: so many hosts or instances, so many "
        "members of each server group (group), or so many of the hosts whose facts have the same "
        "value of a label, such as rack. A share (N%) is rounded down, and needs facts that say "
        "when they were read. A plan that touches more is refused. Default: any number.",
    ),
    cfg.Opt(
        "blast_radius_at_once",
        type=_BLAST_RADIUS,
        sample_default="hosts=2, rack=1",
        help="How much of the cloud the running actions of one plan may touch at the same time, "
        "written as blast_radius. It becomes limits of new plans; a plan without them is refused.",
    ),
    cfg.Opt(
        "windows",
        type=_WINDOWS,
        sample_default="sat,sun 22:00-04:00 Europe/Prague, mon-fri 01:00-05:00 Europe/Prague",
        help="When actions may start: DAYS FROM-TO ZONE, of which one has to be open. DAYS is "
        "daily, or days and ranges such as mon-thu,sat; the times are those of the clocks in the "
        "zone. An action starts only if 9 in 10 such actions would end before the window closes; "
        "all others wait. Default: always.",
    ),
    cfg.Opt(
        "failure_budget",
        type=_BUDGETS,
        sample_default="3 in 1h, migrate=10%",
        help="How many actions of a plan may fail: N of all, TYPE=N or TYPE=N% of those of a type, "
        "with 'in TIME' (30m, 2h) within that time. If more fail, nothing new starts, and the "
        "plan is PAUSED. A retry that succeeds is no failure. Default: any number.",
    ),
    cfg.Opt(
        "health_probe",
        secret=True,
        type=CheckedText(option_types.probe),
        sample_default="https://monitor.example.org/healthy",
        help="Is asked before the first actions of a plan start, and after actions have ended "
        "before others start: an address that has to answer 200, or a command line that has to "
        "end with 0, within 30 seconds. If it does not, nothing new starts, and the plan is "
        "PAUSED. Default: none.",
    ),
)


def guard_of(conf: cfg.ConfigOpts) -> Guard:
    """Return the guard with the demands of a configuration on all plans."""
    from applier.guarding.guard import Guard

    options = conf.watcher_applier
    return Guard(
        site=guards.Guards(
            approvals=options.approvals,
            approval_by_another=options.approval_by_another,
            approval_max_age_s=options.approval_max_age_s,
            blast_radius=options.blast_radius or (),
            blast_radius_at_once=options.blast_radius_at_once or (),
            windows=(options.windows,) if options.windows else (),
            failure_budget=options.failure_budget or (),
        ),
        approvals_for=options.approvals_for or {},
    )
