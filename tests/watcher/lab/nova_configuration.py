# SPDX-License-Identifier: Apache-2.0
"""The configuration of the lab's Nova and Placement."""

from __future__ import annotations

_CLIENT = """\
auth_type = password
auth_url = {keystone}
password = x
project_name = service
user_domain_name = Default
project_domain_name = Default
region_name = lab
"""
_NOVA = """\
[DEFAULT]
log_file = {folder}/nova.log
use_stderr = false
state_path = {folder}
my_ip = 127.0.0.1
host = lab
transport_url = fake:/
rpc_response_timeout = 60
compute_driver = fake.LabDriver
report_interval = 5
# On a machine that is busy, services report late.
service_down_time = 120
update_resources_interval = 10
sync_power_state_interval = -1
bandwidth_poll_interval = -1
shelved_poll_interval = -1
resize_confirm_window = 0
max_concurrent_live_migrations = 2
# Else each of the eight RPC servers has 64 threads.
executor_thread_pool_size = 12
vif_plugging_timeout = 0
allow_resize_to_same_host = false
[api]
response_validation = ignore
[database]
connection = sqlite:///{folder}/cell1.sqlite?timeout=60
sqlite_synchronous = false
[api_database]
connection = sqlite:///{folder}/api.sqlite?timeout=60
sqlite_synchronous = false
[oslo_concurrency]
lock_path = {folder}/lock
[wsgi]
api_paste_config = {paste}
[keystone_authtoken]
www_authenticate_uri = {keystone}
service_token_roles_required = false
username = nova
{client}
[placement]
username = placement
{client}
[neutron]
username = nova
{client}
[keystone]
username = nova
{client}
[glance]
endpoint_override = {glance}
enable_certificate_validation = false
[cinder]
catalog_info = block-storage::publicURL
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
enabled_filters = ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,
  ServerGroupAntiAffinityFilter
# Else the scheduler believes for 2 minutes that a server is on the host that it has left.
track_instance_changes = false
build_failure_weight_multiplier = 0.0
[scheduler]
discover_hosts_in_cells_interval = -1
[quota]
driver = nova.quota.NoopQuotaDriver
[vnc]
enabled = false
"""
_PLACEMENT = """\
[placement_database]
connection = sqlite:///{folder}/placement.sqlite?timeout=60
sqlite_synchronous = false
[api]
auth_strategy = noauth2
"""
_CLOUDS = """\
clouds:
  lab:
    region_name: lab
    compute_default_microversion: "2.96"
    auth:
      auth_url: {keystone}/v3
      username: admin
      password: x
      project_name: admin
      user_domain_name: Default
      project_domain_name: Default
"""


def write(folder, paste, urls):
    """Write nova.conf, placement.conf and clouds.yaml; ``paste`` is Nova's api-paste.ini."""
    values = {**urls, "folder": folder, "paste": paste, "client": _CLIENT.format(**urls)}
    for name, text in (
        ("nova.conf", _NOVA),
        ("placement.conf", _PLACEMENT),
        ("clouds.yaml", _CLOUDS),
    ):
        (folder / name).write_text(text.format(**values))
