# SPDX-License-Identifier: Apache-2.0
"""Inventories of Ansible as nodes of documents: the real ansible-inventory reads them."""

from __future__ import annotations

from pathlib import Path

import environments
import pytest

from planner import make_plan
from planner.documents import inventory
from planner.errors import InvalidInput

pytestmark = pytest.mark.slow

INI = """\
zed
[web]
web-2 ansible_host=10.0.0.2 ansible_user=root ansible_port=2222 rack=r1 number=3
web-1 ansible_password=unsaid
[db]
db-1 ansible_host=fe80::1
web-1
[site:children]
db
web
[site:vars]
env=prod
spare=False
"""
YAML = """\
web:
  hosts:
    b:
      secret: !vault |
        $ANSIBLE_VAULT;1.1;AES256
        3034
      ports: [1]
    a:
"""


@pytest.mark.parametrize("version", ["newest", pytest.param("oldest", marks=pytest.mark.long)])
def test_groups_are_roles_and_variables_are_labels_in_the_order_of_ansible(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if version == "oldest":
        oldest = environments.require_made(environments.ANSIBLE)
        monkeypatch.setattr(inventory, "program", lambda name: str(oldest.program(name)))
    (tmp_path / "hosts.ini").write_text(INI)
    labels = {"env": "prod", "spare": "false"}
    nodes = inventory.read_inventory([tmp_path / "hosts.ini"])
    assert nodes == [
        {"name": "zed", "address": "zed", "roles": [], "labels": {}},
        {"name": "db-1", "address": "[fe80::1]", "roles": ["db", "site"], "labels": labels},
        {"name": "web-1", "address": "web-1", "roles": ["db", "site", "web"], "labels": labels},
        {
            "name": "web-2",
            "address": "root@10.0.0.2:2222",
            "roles": ["site", "web"],
            "labels": {"rack": "r1", "number": "3", **labels},
        },
    ]


def test_a_relative_path_begins_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet/hosts.ini").write_text("web-1")
    monkeypatch.chdir(tmp_path)
    assert [node["name"] for node in inventory.read_inventory(["fleet/hosts.ini"])] == ["web-1"]


def test_folders_scripts_and_values_of_a_vault_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "inventory"
    folder.mkdir()
    (folder / "hosts.yaml").write_text(YAML)
    script = tmp_path / "script"
    script.write_text("""#!/bin/sh\necho '{"db": {"hosts": ["c"]}, "_meta": {"hostvars": {}}}'\n""")
    script.chmod(0o755)
    names = [node["name"] for node in inventory.read_inventory([folder, script])]
    assert names == ["b", "a", "c"]
    assert inventory.read_inventory([folder], "b")[0]["labels"] == {}


def test_rollouts_and_deployments_take_their_nodes_from_inventories(tmp_path: Path) -> None:
    (tmp_path / "hosts.ini").write_text(INI)
    (tmp_path / "hosts.yaml").write_text(YAML)
    document = tmp_path / "document.yaml"
    rollout = "{{kind: rollout, name: p, nodes: {}, steps: [shell: id]}}"
    deployment = "{{kind: deployment, nodes: {}, tasks: [{{id: t, type: shell, role: db, "
    deployment += "parameters: {{cmd: id}}}}]}}"
    for text, nodes, names in (
        (rollout, "{from: hosts.yaml}", ["b/shell", "a/shell"]),
        (rollout, "{from: hosts.ini, role: web, limit: 'all:!web-1'}", ["web-2/shell"]),
        (rollout, "{from: hosts.ini, label: {rack: r1, spare: 'false'}}", ["web-2/shell"]),
        (
            deployment,
            "{from: hosts.ini, limit: '*-1'}",
            ["db-1/t", "web-1/t", "join/deployment-100"],
        ),
    ):
        document.write_text(text.format(nodes))
        made = make_plan(document)
        assert [action.name for action in made.actions] == names, nodes
    assert made.actions[0].input_parameters["address"] == "[fe80::1]"


def test_what_is_no_inventory_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hosts.ini").write_text(INI)
    (tmp_path / "hosts.yaml").write_text("web: {hosts: [a")
    (tmp_path / "bad.ini").write_text("[web\n")
    (tmp_path / "list.yaml").write_text("[a, b]")
    document = tmp_path / "document.yaml"
    cases = [
        ("{from: none.ini}", "none.ini: cannot be read"),
        ("{from: hosts.yaml}", "hosts.yaml:2: not YAML"),
        ("{from: bad.ini}", "bad.ini: Ansible says: Failed to parse inventory with 'ini' plugin"),
        ("{from: hosts.ini, limit: nobody}", "no host of the inventory matches 'nobody'"),
        ("{from: hosts.ini, label: {rack: r9}}", "no node has rack=r9"),
        ("{from: list.yaml, limit: a}", "document.yaml:1: nodes.limit: it is for the hosts of"),
        ("{from: hosts.ini}", "needs the extra 'ansible'"),
    ]
    for nodes, told in cases:
        if "extra" in told:
            monkeypatch.setattr(inventory, "program", lambda _: None)
        document.write_text(f"{{kind: rollout, name: p, nodes: {nodes}, steps: [nop: x]}}")
        with pytest.raises(InvalidInput) as refused:
            make_plan(document)
        assert told in str(refused.value), nodes
