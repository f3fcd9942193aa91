# SPDX-License-Identifier: Apache-2.0
"""The configuration of the lab's Cinder."""

from __future__ import annotations

BACKENDS = ("b1", "b2")
_BASE = """\
[DEFAULT]
log_file = {folder}/cinder.log
use_stderr = false
state_path = {folder}
my_ip = 127.0.0.1
host = lab
transport_url = fake:/
rpc_response_timeout = 60
# Else each of the RPC servers has 64 threads.
executor_thread_pool_size = 12
auth_strategy = keystone
api_paste_config = {etc}/api-paste.ini
resource_query_filters_file = {etc}/resource_filters.json
enabled_backends = {backends}
default_volume_type = plain
report_interval = 5
# On a machine that is busy, services report late.
service_down_time = 120
periodic_interval = 5
periodic_fuzzy_delay = 0
backend_stats_polling_interval = 5
volume_clear = none
quota_volumes = -1
quota_gigabytes = -1
scheduler_default_filters = AvailabilityZoneFilter,CapacityFilter,CapabilitiesFilter
migration_create_volume_timeout_secs = 120
[database]
connection = sqlite:///{folder}/cinder.sqlite?timeout=60
sqlite_synchronous = false
[coordination]
backend_url = file://{folder}/coordination
[oslo_concurrency]
lock_path = {folder}/lock
[key_manager]
backend = cinder.keymgr.conf_key_mgr.ConfKeyManager
[keystone_authtoken]
auth_type = password
auth_url = {keystone}
www_authenticate_uri = {keystone}
username = admin
password = x
project_name = service
user_domain_name = Default
project_domain_name = Default
service_token_roles_required = false
"""
_BACKEND = """\
[{name}]
volume_driver = cinder.volume.driver.LabDriver
volume_backend_name = {name}
"""


def write(folder, etc, keystone):
    """Write cinder.conf; ``etc`` is the folder with the files of Cinder's package."""
    values = {"folder": folder, "etc": etc, "keystone": keystone, "backends": ",".join(BACKENDS)}
    sections = (_BACKEND.format(name=name) for name in BACKENDS)
    path = folder / "cinder.conf"
    path.write_text(_BASE.format(**values) + "".join(sections), encoding="utf-8")
    return path
