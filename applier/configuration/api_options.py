# SPDX-License-Identifier: Apache-2.0
"""The options of the HTTP API: the section ``[api]``, which has the name of Watcher's."""

from __future__ import annotations

from oslo_config import cfg

from planner.schemas import ranges

API = cfg.OptGroup("api", title="The HTTP API")

API_OPTIONS = (
    cfg.HostAddressOpt(
        "host",
        default="127.0.0.1",
        help="Address on which actionplan-api listens.",
    ),
    cfg.PortOpt("port", default=9322, help="Port on which actionplan-api listens."),
    cfg.StrOpt(
        "auth_strategy",
        choices=[
            ("none", "nobody is asked for a name; only on a loopback address"),
            ("http_basic", "user and password of the file http_basic_auth_user_file"),
            ("keystone", "a token of Keystone, as [keystone_authtoken] says"),
        ],
        default="none",
        help="How callers prove who they are. Without any proof they have the role 'operator', "
        "users of the file those that 'roles' names, and Keystone knows the roles of its own.",
    ),
    cfg.StrOpt(
        "http_basic_auth_user_file",
        default="/etc/actionplan/htpasswd",
        help="File with a line USER:HASH for each user, with bcrypt: 'htpasswd -B FILE USER' "
        "writes one.",
    ),
    cfg.DictOpt(
        "roles",
        default={},
        sample_default={"ada": "admin", "bob": "operator"},
        help="Roles of the users of that file, as USER:ROLE. A 'reader' may look, an 'operator' "
        "may also make, run and steer plans, an 'admin' may do everything. Users that are not "
        "named are readers.",
    ),
    cfg.StrOpt(
        "reader_role",
        sample_default="cloud_reader",
        help="Role of Keystone that may read all plans, with the names of servers and commands of "
        "all projects. Default: only 'admin' and 'operator' may. The role 'reader' of Keystone "
        "is one that every member of any project has.",
    ),
    cfg.StrOpt(
        "command_role",
        default="admin",
        help="Role that may store a plan whose actions run commands, write files or ask other "
        "systems than the cloud, such as shell and http_check: they do so as the user of the "
        "applier, from its machine.",
    ),
    cfg.FloatOpt(
        "requests_per_second",
        default=100.0,
        min=0.01,
        max=ranges.MOST,
        help="Requests that one caller may make in a second, on average; ten seconds' worth may "
        "come at once. More are answered with 429.",
    ),
)
