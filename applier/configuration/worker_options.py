# SPDX-License-Identifier: Apache-2.0
"""The options of workers: the broker, queues, leases."""

from __future__ import annotations

from oslo_config import cfg

from applier.configuration import option_types
from applier.configuration.option_types import CheckedText
from planner import ranges

WORKERS = cfg.OptGroup("workers", title="One plan over many machines: actions run at workers")

WORKER_OPTIONS = (
    cfg.Opt(
        "broker",
        type=CheckedText(option_types.broker),
        secret=True,
        sample_default="amqp://actionplan:SECRET@broker.example//",
        help="Address of the message broker between appliers and workers: amqp:// or amqps:// for "
        "RabbitMQ, redis:// or rediss:// for Redis. Needs the extra workers.",
    ),
    cfg.StrOpt(
        "broker_ca_file",
        sample_default="/etc/ssl/certs/broker-ca.pem",
        help="File with the certificates of the authorities by which a broker at amqps:// or "
        "rediss:// is known. Without it, those of the system count. The certificate always has to "
        "be of the host that 'broker' names.",
    ),
    cfg.ListOpt(
        "queues",
        default=["default"],
        sample_default="site-b,default",
        help="The queues that a worker serves. Actions that no route leads elsewhere are in the "
        "queue 'default'.",
    ),
    cfg.FloatOpt(
        "lease_s",
        default=30.0,
        min=1,
        max=ranges.LONGEST_S,
        help="Seconds after which a worker that was not heard of counts as lost. A shorter outage "
        "of the record, of the broker or of a link costs no action. The same value for appliers "
        "and workers.",
    ),
    cfg.ListOpt(
        "route",
        item_type=CheckedText(option_types.token_kind),
        default=[],
        sample_default="region",
        help="Kinds of tokens that name the queue of an action: with 'region', an action with the "
        "token region:site-b is in the queue site-b. The first kind of which it has one counts.",
    ),
)
