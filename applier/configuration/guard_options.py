# SPDX-License-Identifier: Apache-2.0
"""The options of ``[watcher_applier]`` for guards: what must hold before a plan runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from oslo_config import cfg, types

from applier.configuration import option_types
from applier.configuration.option_types import CheckedText
from planner import guards
from planner.guards import blast_radius, failure_budget, windows
from planner.guards.blast_radius import Bounds
from planner.schemas import ranges

if TYPE_CHECKING:
    from applier.guarding.guard import Guard


class ApprovalsFor(types.ConfigType):
    """Option type: numbers of approvals by planner, size and label."""

    def __init__(self) -> None:
        super().__init__(type_name="approvals of some plans")

    def __call__(self, value: str | Mapping[str, object]) -> dict[str, int]:
        """Read pairs such as ``size:100=2``; raises ValueError that names each wrong pair."""
        return guards.approvals_for(value)

    def _formatter(self, value: Mapping[str, int]) -> str:
        return ", ".join(f"{what}={number}" for what, number in value.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ApprovalsFor)

    def __hash__(self) -> int:
        return hash(ApprovalsFor)

    def __repr__(self) -> str:
        return "ApprovalsFor"


class Windows(types.ConfigType):
    """Option type: windows of time."""

    def __init__(self) -> None:
        super().__init__(type_name="windows")

    def __call__(self, value: str | Sequence[str]) -> tuple[str, ...]:
        """Read windows; raises ValueError that names each wrong one."""
        return windows.windows(value)

    def _formatter(self, value: Sequence[str]) -> str:
        return ", ".join(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Windows)

    def __hash__(self) -> int:
        return hash(Windows)

    def __repr__(self) -> str:
        return "Windows"


class Budgets(types.ConfigType):
    """Option type: failure budgets."""

    def __init__(self) -> None:
        super().__init__(type_name="failure budgets")

    def __call__(self, value: str | Sequence[str]) -> tuple[str, ...]:
        """Read budgets; raises ValueError that names each wrong one."""
        return failure_budget.budgets(value)

    def _formatter(self, value: Sequence[str]) -> str:
        return ", ".join(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Budgets)

    def __hash__(self) -> int:
        return hash(Budgets)

    def __repr__(self) -> str:
        return "Budgets"


class BlastRadius(types.ConfigType):
    """Option type: bounds on hosts, instances, members of a group, hosts with the same label."""

    def __init__(self) -> None:
        super().__init__(type_name="bounds")

    def __call__(self, value: str | Bounds) -> Bounds:
        """Read ``hosts=2, rack=50%`` and the like; raises ValueError that names each wrong pair."""
        return value if isinstance(value, tuple) else blast_radius.bounds(value)

    def _formatter(self, value: Bounds) -> str:
        pairs = blast_radius.to_dict(value).items()
        return ", ".join(
            f"{kind}={one}" for kind, n in pairs for one in (n if isinstance(n, list) else [n])
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlastRadius)

    def __hash__(self) -> int:
        return hash(BlastRadius)

    def __repr__(self) -> str:
        return "BlastRadius"


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
        type=ApprovalsFor(),
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
        type=BlastRadius(),
        sample_default="hosts=20%, instances=50, rack=50%, group=1",
        help="How much of the cloud one plan may touch: so many hosts or instances, so many "
        "members of each server group (group), or so many of the hosts whose facts have the same "
        "value of a label, such as rack. A share (N%) is rounded down, and needs facts that say "
        "when they were read. A plan that touches more is refused. Default: any number.",
    ),
    cfg.Opt(
        "blast_radius_at_once",
        type=BlastRadius(),
        sample_default="hosts=2, rack=1",
        help="How much of the cloud the running actions of one plan may touch at the same time, "
        "written as blast_radius. It becomes limits of new plans; a plan without them is refused.",
    ),
    cfg.Opt(
        "windows",
        type=Windows(),
        sample_default="sat,sun 22:00-04:00 Europe/Prague, mon-fri 01:00-05:00 Europe/Prague",
        help="When actions may start: DAYS FROM-TO ZONE, of which one has to be open. DAYS is "
        "daily, or days and ranges such as mon-thu,sat; the times are those of the clocks in the "
        "zone. An action starts only if 9 in 10 such actions would end before the window closes; "
        "all others wait. Default: always.",
    ),
    cfg.Opt(
        "failure_budget",
        type=Budgets(),
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
