# SPDX-License-Identifier: Apache-2.0
"""The cloud ``openstack``: Nova, Cinder and Ironic, called through openstacksdk.

The module ``cloud`` is the plugin. Each operation is in another module: ``moves`` (migrate and
resize), ``server_changes``, ``compute`` (its services), ``power``, ``volumes``. All calls go
through ``calls``, which repeats a call after a transient fault. ``state_waits`` waits for servers
and volumes, and reads all of them by one call in each interval. How Nova, Cinder and Ironic
behave, and how they fail, was measured on real ones.
"""
