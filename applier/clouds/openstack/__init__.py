# SPDX-License-Identifier: Apache-2.0
"""The cloud ``openstack``: Nova, Cinder and Ironic, called through openstacksdk.

``cloud`` is the plugin, and passes each operation on: ``moves`` (migrate and resize), ``statuses``,
``creation``, ``services``, ``power``, ``volumes``. All of them make their calls through ``calls``,
which repeats what met a transient fault, and wait through ``following``, which asks for all servers
or volumes that are waited for at once. What Nova, Cinder and Ironic do, and how they fail, was
measured on real ones.
"""
