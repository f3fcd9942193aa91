# SPDX-License-Identifier: Apache-2.0
"""What clients of a lab read."""

from __future__ import annotations

_CLOUDS = """\
clouds:
  lab:
    region_name: lab
    auth:
      auth_url: {keystone}/v3
      username: admin
      password: x
      project_name: admin
      user_domain_name: Default
      project_domain_name: Default
"""


def write(folder, keystone):
    """Write clouds.yaml, for an administrator."""
    (folder / "clouds.yaml").write_text(_CLOUDS.format(keystone=keystone), encoding="utf-8")
