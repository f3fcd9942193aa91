# SPDX-License-Identifier: Apache-2.0
"""Which roles may do what: the defaults, which ``policy.yaml`` changes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import falcon
from oslo_config import cfg
from oslo_policy import policy

from applier.api.caller import Caller


class Rule(NamedTuple):
    """A rule of the policy: its name, who passes it by default, and what it allows."""

    name: str
    check: str
    allows: str


READ, OPERATE, ADMINISTER = "rule:reader", "rule:operator", "rule:admin"
RULES = (
    Rule("admin", "role:admin", "who may do everything"),
    Rule("operator", "role:operator or rule:admin", "who may make and run plans"),
    Rule("reader", "role:reader or rule:operator", "who may look"),
    Rule("plan:read", READ, "list and show plans, their actions, output and history"),
    Rule("plan:create", OPERATE, "make and store plans"),
    Rule("plan:delete", OPERATE, "remove plans, and bring them back"),
    Rule("plan:approve", OPERATE, "approve plans"),
    Rule("plan:run", OPERATE, "start, pause, resume, cancel and roll back plans, change limits"),
    Rule("action:steer", OPERATE, "skip, abort and settle actions"),
    Rule("event:read", READ, "read the events of all plans"),
    Rule("event:administer", ADMINISTER, "remove subscriptions to events"),
    Rule("record:administer", ADMINISTER, "export, import and purge plans, import durations"),
    Rule("service:read", READ, "list applier services and workers"),
    Rule("worker:drain", OPERATE, "tell workers to take no more jobs"),
    Rule("product:read", READ, "list planners, action types and schemas"),
    Rule("metrics:read", READ, "read metrics"),
)
#: The rule for plans whose actions run commands; its default is ``[api] command_role``.
COMMANDS = "plan:create_with_commands"
#: For how many seconds a decision is kept: a changed policy.yaml holds after that.
KEPT_S = 5.0


class Policy:
    """Decides whether a caller may do something.

    A decision is kept for KEPT_S seconds: oslo.policy looks for changed files at each question.
    """

    def __init__(self, conf: cfg.ConfigOpts, clock: Callable[[], float] = time.monotonic) -> None:
        self._enforcer, self._clock = policy.Enforcer(conf), clock
        self._decisions: dict[tuple[object, ...], bool] = {}
        self._kept_until = 0.0
        commands = f"role:{conf.api.command_role}"
        what = "store plans whose actions run commands"
        for name, check, allows in (*RULES, Rule(COMMANDS, commands, what)):
            self._enforcer.register_default(policy.RuleDefault(name, check, allows))

    def allows(self, caller: Caller, rule: str) -> bool:
        """Return whether a rule lets the caller pass."""
        now = self._clock()
        if now > self._kept_until:
            self._decisions, self._kept_until = {}, now + KEPT_S
        key = rule, caller.user, caller.project, caller.roles
        decided = self._decisions.get(key)
        if decided is None:
            decided = self._decisions[key] = self._decide(caller, rule)
        return decided

    def _decide(self, caller: Caller, rule: str) -> bool:
        credentials = {
            "roles": sorted(caller.roles),
            "user_name": caller.user,
            "project_name": caller.project or "",
        }
        return bool(self._enforcer.authorize(rule, {}, credentials))

    def require(self, caller: Caller, rule: str) -> None:
        """Raise falcon.HTTPForbidden if a rule does not let the caller pass."""
        if not self.allows(caller, rule):
            raise falcon.HTTPForbidden(
                title="Forbidden",
                description=f"{caller.user} may not do that: the rule {rule!r} of the policy "
                f"does not let the roles {', '.join(sorted(caller.roles)) or 'none'} pass",
            )
