# SPDX-License-Identifier: Apache-2.0
"""The options of events: who receives them, and how long they are kept."""

from __future__ import annotations

from oslo_config import cfg

from applier.configuration.option_types import Webhooks
from planner import ranges

EVENTS = cfg.OptGroup("events", title="Where the events of plans are delivered")

EVENT_OPTIONS = (
    cfg.Opt(
        "webhooks",
        secret=True,
        type=Webhooks(),
        default={},
        sample_default="ops:https://ops.example.org/hooks/actionplan",
        help="Addresses to which actionplan-applier posts each event as a CloudEvent, as "
        "NAME:URL, separated by commas. With another name, it is another receiver.",
    ),
    cfg.DictOpt(
        "secret_files",
        default={},
        sample_default="ops:/etc/actionplan/ops.secret",
        help="Files with the keys by which requests to webhooks are signed, as NAME:FILE.",
    ),
    cfg.StrOpt(
        "file",
        sample_default="/var/log/actionplan/events.jsonl",
        help="File to which actionplan-applier appends each event as a line of JSON.",
    ),
    cfg.BoolOpt(
        "notifications",
        default=False,
        help="Whether actionplan-applier sends events as the notifications of Watcher, by the "
        "options that Watcher has for that: [DEFAULT] transport_url, "
        "[oslo_messaging_notifications] and [oslo_messaging_rabbit].",
    ),
    cfg.FloatOpt(
        "give_up_after_s",
        default=86400.0,
        min=1,
        max=ranges.LONGEST_S,
        help="Seconds for which an event is delivered again before it is given up; those are "
        "listed by: actionplan event list --dead.",
    ),
    cfg.FloatOpt(
        "keep_s",
        default=86400.0,
        min=60,
        max=ranges.LONGEST_S,
        help="Seconds for which events are kept for readers, who ask for them over HTTP. Readers "
        "count as gone when they have not asked for that long.",
    ),
)
