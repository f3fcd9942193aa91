# SPDX-License-Identifier: Apache-2.0
"""The actions of a plan and the options for it, as text to copy; secrets are replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from oslo_config import cfg

from applier.configuration import plugin_options
from applier.configuration.options import BY_SECTION
from applier.operations import hidden_parameters
from planner.errors import PlannerError
from planner.making import options as planning_options
from planner.making import registry
from planner.making.registry import ActionTypes
from planner.plan.model import JOIN, Action, ActionPlan
from planner.safe_text import visible_json

#: The maximum number of characters of the actions; those beyond that are only counted.
MOST = 120_000
#: The sections of ActionPlan itself that concern planning or running a plan.
_ABOUT_PLANS = ("watcher_planner", "watcher_applier")
_FIELDS = ("name", "action_type", "resource_id", "input_parameters", "estimate_s", "timeout_s")


def actions_text(plan: ActionPlan, types: ActionTypes) -> str:
    """Return a plan as JSON, with each action on a line of its own, without links between actions.

    It is not JSON any more if it was cut at ``MOST`` characters.
    """
    head = {"name": plan.name, "planner": plan.planner, "on_failure": plan.on_failure}
    lines, left = ["{"], MOST
    lines += [f" {visible_json(key)}: {visible_json(value)}," for key, value in head.items()]
    lines += [f' "limits": {visible_json(dict(plan.limits))},', ' "actions": [']
    actions = [a for a in plan.actions if a.action_type != JOIN]
    for i, action in enumerate(actions):
        last = i + 1 == len(actions)
        line = f"  {visible_json(_of(hidden_parameters.action_without(action, types)))}"
        left -= len(line)
        if left < 0:
            lines.append(f"  … {len(actions) - i} more; actionplan show {plan.uuid[:8]} -f json")
            break
        lines.append(line if last else f"{line},")
    return "\n".join([*lines, " ]", "}"])


def _of(action: Action) -> dict[str, Any]:
    found = {name: getattr(action, name) for name in _FIELDS}
    if action.retries:
        found["retries"] = action.retries
    return {name: value for name, value in found.items() if value not in (None, {})}


def configuration_text(conf: cfg.ConfigOpts, plan: ActionPlan) -> str:
    """Return the options about planning and running this plan that are not at their defaults.

    The text has the syntax of a configuration file. Options with invalid values are left out.
    """
    lines: list[str] = []
    for name, options in _sections(conf, plan):
        conf.register_opts(options, group=name)
        changed = list(_changed(conf, name, options))
        if changed:
            lines += ["", f"[{name}]", *changed]
    return "\n".join(lines[1:]) or "# every option is at its default"


def _sections(conf: cfg.ConfigOpts, plan: ActionPlan) -> Iterator[tuple[str, Sequence[cfg.Opt]]]:
    """Yield the names and the options of the sections about this plan.

    The plugins are the planner and the action types of the plan, and the configured engine. One
    that cannot be used is left out.
    """
    for name in _ABOUT_PLANS:
        yield name, BY_SECTION[name]
    types = dict.fromkeys(a.action_type for a in plan.actions if a.action_type != JOIN)
    for kind, name in (
        (registry.PLANNERS, plan.planner),
        (registry.ENGINES, plugin_options.engine_name(conf)),
        *((registry.ACTIONS, name) for name in types),
    ):
        try:
            options = plugin_options.of_plugin(kind, name)
        except PlannerError:
            continue
        if kind == registry.PLANNERS:
            for section in planning_options.sections_of(name, conf):
                yield section, options
        else:
            own = plugin_options.OF_EVERY_TYPE if kind == registry.ACTIONS else ()
            yield registry.section_of(kind, name), (*own, *options)


def _changed(conf: cfg.ConfigOpts, section: str, options: Sequence[cfg.Opt]) -> Iterator[str]:
    for opt in options:
        try:
            value = conf[section][opt.dest]
        except cfg.ConfigFileValueError:
            continue
        if value is not None and value != opt.default:
            written = "***" if opt.secret else ",".join(opt.type.format_defaults(value))
            yield f"{opt.dest} = {written}"
