# SPDX-License-Identifier: Apache-2.0
"""The rules of the policy with their defaults, which ``policy.yaml`` overrides, and their check."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import falcon
from oslo_config import cfg
from oslo_policy import policy

from applier.api.caller import Caller


class Rule(NamedTuple):
    """A rule of the policy: its name, its default check string (oslo.policy), what it allows."""

    name: str
    check: str
    allows: str


READ, OPERATE, ADMINISTER = "rule:reader", "rule:operator", "rule:admin"
RULES = (
    Rule("admin", "role:admin", "who may do everything"),
    Rule("operator", "role:operator or rule:admin", "who may make and run plans"),
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
#: The rule for reading. With Keystone, whose role 'reader' every member of any project has, its
#: default is the role ``[api] reader_role``, besides those of operators.
READER = "reader"
#: The rule for storing plans whose actions run commands or read secrets of the applier. Its default
#: is the role ``[api] command_role``.
COMMANDS = "plan:create_with_commands"
#: For how many seconds decisions are cached; a changed policy.yaml takes effect after that.
KEPT_S = 5.0


class Policy:
    """Checks callers against the rules of the policy.

    Decisions are cached for KEPT_S seconds, because oslo.policy looks for changed files at each
    check.
    """

    def __init__(self, conf: cfg.ConfigOpts, clock: Callable[[], float] = time.monotonic) -> None:
        self._enforcer, self._clock = policy.Enforcer(conf), clock
        self._decisions: dict[tuple[object, ...], bool] = {}
        self._kept_until = 0.0
        configured = (
            Rule(READER, f"{_reader(conf)}rule:operator", "who may look"),
            Rule(COMMANDS, f"role:{conf.api.command_role}", "store plans that run commands"),
        )
        for name, check, allows in (*RULES, *configured):
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


def _reader(conf: cfg.ConfigOpts) -> str:
    """Return the check of the role that may only read, followed by ``or``; else an empty text."""
    role = conf.api.reader_role if conf.api.auth_strategy == "keystone" else "reader"
    return f"role:{role} or " if role else ""
