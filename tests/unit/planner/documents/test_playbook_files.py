# SPDX-License-Identifier: Apache-2.0
"""Playbooks that are read: the real ansible-playbook tells plays, hosts, tasks and mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import environments
import pytest

from planner.documents import Document, inventory
from planner.documents.playbook import read_plays
from planner.errors import InvalidInput

pytestmark = pytest.mark.slow

HOSTS = "[web]\nw1\nw2\n[db]\nd1\n[v6]\nfe80::1\n2001:db8::7\n"


@pytest.fixture(
    params=["newest", pytest.param("oldest", marks=pytest.mark.long)], ids=lambda name: name
)
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the installed version, or the oldest that is supported."""
    if request.param == "oldest":
        oldest = environments.require_made(environments.ANSIBLE)
        monkeypatch.setattr(inventory, "program", lambda name: str(oldest.program(name)))


def read(folder: Path, files: Mapping[str, str], **document: Any) -> Document:
    """Write files, and read the playbook ``site.yml`` among them."""
    for name, text in {"hosts": HOSTS, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return read_plays(document, str(folder / "site.yml"), [str(folder / "hosts")])


@pytest.mark.usefixtures("version")
def test_variables_of_imports_hold_as_in_ansible_and_plays_know_their_lines(tmp_path: Path) -> None:
    """The outermost import holds over the inner ones, those over the play, given ones over all."""
    files = {
        "site.yml": "- import_playbook: a/outer.yml\n  vars: {who: site, t: '{{ g }}'}\n"
        "- {hosts: db, name: last}\n",
        "a/outer.yml": "- import_playbook: b/../b/inner.yml\n  vars: {who: outer, n: [1, '50%']}\n",
        "a/b/inner.yml": "---\n- hosts: '{{ t }}'\n  name: '{{ who }} {{ own }} {{ deep.er }}'\n"
        "  vars: {who: play, own: '{{ g }}s', deep: {er: '{{ own }}'}}\n"
        "  vars_prompt: [{name: size, default: 2}]\n"
        "  serial: ['{{ size }}', '{{ n[1] }}']\n",
    }
    made = read(tmp_path, files, variables={"g": "web"})
    first, last = made.value
    assert (first["name"], first["hosts"]) == ("site webs webs", ["w1", "w2"])
    assert [str(one) for one in first["serial"]] == ["2", "50%"]
    assert (last["name"], last["hosts"]) == ("last", ["d1"])
    assert [made.locate((i, "hosts")) for i in (0, 1)] == [
        f"{tmp_path}/a/b/inner.yml:2",
        f"{tmp_path}/site.yml:3",
    ]
    limited = read(tmp_path, {}, variables={"g": "web", "own": "x"}, limit=["w2", "d1"])
    assert [one["hosts"] for one in limited.value] == [["w2"], ["d1"]]
    assert limited.value[0]["name"] == "site x x"


@pytest.mark.usefixtures("version")
def test_variables_come_from_where_ansible_takes_them_for_a_play(tmp_path: Path) -> None:
    """Files named by a play hold over its ``vars``; those of groups are not there for a play."""
    play = "- {hosts: '{{ t }}', vars: {t: nobody}, vars_files: [more.yml], roles: [part]%s}\n"
    files = {
        "site.yml": play % ", serial: '{{ few }}', any_errors_fatal: '{{ fatal }}'",
        "more.yml": "t: db\nfatal: 'yes'\n",
        "group_vars/all.yml": "t: web\nfew: 9\n",
        "roles/part/defaults/main.yml": "few: 1\n",
    }
    (play,) = read(tmp_path, files).value
    assert (play["hosts"], play["serial"], play["any_errors_fatal"]) == (["d1"], [1], True)


@pytest.mark.usefixtures("version")
def test_addresses_of_ipv6_are_hosts(tmp_path: Path) -> None:
    files = {"site.yml": "- hosts: fe80::1\n- hosts: v6\n- {hosts: 'web[0]:d1'}\n"}
    made = read(tmp_path, files)
    assert [play["hosts"] for play in made.value] == [
        ["fe80::1"],
        ["fe80::1", "2001:db8::7"],
        ["w1", "d1"],
    ]


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize(
    ("text", "place", "told"),
    [
        ("- hosts: '{{ nope }}'\n", "site.yml:1", "'nope' is undefined"),
        ("- hosts: '{{ t }}'\n  vars: {t: !unsafe '{{ u }}'}\n", "site.yml:1", "template"),
        ("- hosts: 'web[9]'\n", "site.yml:1", "subscripted pattern 'web[9]'"),
        ("- hosts: web\n  strategy: quick\n", "site.yml:1", "no strategy 'quick'"),
        ("- hosts: web\n  any_errors_fatal: some\n", "site.yml:1", "'some'"),
        ("- hosts: web\n  max_fail_percentage: most\n", "site.yml:1", "max_fail_percentage"),
        ("- hosts: web\n- import_playbook: a/../a/b.yml\n", "a/b.yml:1", "imports this one"),
        ("- hosts: web\n  roles: [gone]\n", "site.yml:2", "'gone' was not found"),
        ("- hosts: web\n  tasks:\n  - far.off.module: {}\n", "site.yml:3", "'far.off.module'"),
        (f"- hosts: web\n  roles: [{'x' * 300}]\n", "site.yml", "role"),
        ("- import_playbook: none.yml\n", "site.yml", "none.yml"),
        ("- hosts: [web\n", "site.yml:2", "YAML"),
        ("hosts: web\n", "site.yml:1", "list of plays"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    tmp_path: Path, text: str, place: str, told: str
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b.yml").write_text("- import_playbook: ../site.yml\n")
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path, {"site.yml": text})
    mistake = refused.value.mistakes[-1]
    assert (mistake.place or "").startswith(f"{tmp_path}/{place}")
    assert told in mistake.text
    assert "Traceback" not in str(refused.value)


def test_mistakes_of_all_plays_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path, {"site.yml": "- hosts: '{{ a }}'\n- hosts: web\n- hosts: '{{ b }}'\n"})
    assert [mistake.place for mistake in refused.value.mistakes] == [
        f"{tmp_path}/site.yml:1",
        f"{tmp_path}/site.yml:3",
    ]


@pytest.mark.usefixtures("version")
def test_tags_choose_the_tasks_and_nothing_runs(tmp_path: Path) -> None:
    touch = f"file: {{path: {tmp_path}/ran, state: touch}}"
    files = {
        "site.yml": f"- hosts: web\n  gather_facts: false\n  pre_tasks:\n  - {touch}\n"
        f"    tags: [always]\n  - {{name: late, {touch}, tags: [b]}}\n  roles: [part]\n"
        "  handlers: [{name: again, debug: {}}]\n",
        "roles/part/tasks/main.yml": f"- name: one\n  {touch}\n- import_tasks: two.yml\n"
        "  tags: [a]\n",
        "roles/part/tasks/two.yml": "- block: [{name: two, debug: {}}]\n",
    }
    (play,) = read(tmp_path, files).value
    assert play["tasks"] == ["file", "late", "part : one", "part : two"]
    assert play["handlers"] == ["again"]
    (play,) = read(tmp_path, {}, tags="a").value
    assert play["tasks"] == ["file", "part : two"]
    (play,) = read(tmp_path, {}, skip_tags=["a", "always"]).value
    assert play["tasks"] == ["late", "part : one"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("version")
def test_words_are_found_in_whatever_a_play_includes(tmp_path: Path) -> None:
    files = {
        "site.yml": "- hosts: web\n  tasks:\n  - import_tasks: tasks/a.yml\n"
        "  - include_tasks: tasks/b.yml\n  - template: {src: c.j2, dest: /x}\n"
        "- {hosts: db, roles: [web]}\n"
        "- hosts: web\n  gather_facts: false\n  tasks:\n"
        "  - debug: {msg: '{{ one }} {{ two }} {{ ansible_os_family }}'}\n",
        "tasks/a.yml": "- {debug: {}, run_once: true}\n",
        "tasks/b.yml": "- group_by: {key: x}\n- set_fact:\n    one: 1\n    two: 2\n",
        "templates/c.j2": "{{ hostvars }}",
        "roles/web/meta/main.yml": "dependencies: [common]\n",
        "roles/web/tasks/main.yml": "- include_role: {name: log}\n"
        "- include_role: {name: '{{ any }}'}\n- include_role: {name: gone.far.role}\n",
        "roles/common/tasks/main.yml": "- {shell: x, register: found}\n",
        "roles/log/templates/log.j2": "{{ ansible_play_hosts }}",
    }
    made = read(tmp_path, files)
    first, second, third = made.value
    assert first["words"] == ["group_by", "hostvars", "one", "run_once", "two"]
    assert first["makes"] == ["one", "two"]
    assert second["words"] == ["ansible_play_hosts", "found"]
    assert second["makes"] == ["found"]
    assert (third["words"], third["lacks_facts"]) == (["one", "two"], True)
    assert "lacks_facts" not in second
    told = [str(w) for w in made.warnings if "role" in str(w)]
    assert [word in one for one, word in zip(told, ["{{ any }}", "gone.far"], strict=True)] == [
        True,
        True,
    ]


@pytest.mark.usefixtures("version")
def test_files_that_a_template_names_are_told_and_encrypted_values_stay_so(tmp_path: Path) -> None:
    vault = "!vault |\n      $ANSIBLE_VAULT;1.1;AES256\n      3034\n"
    files = {
        "site.yml": f"- hosts: web\n  vars:\n    x: {vault}"
        "  tasks:\n  - include_tasks: '{{ kind }}.yml'\n"
        "- hosts: db\n  tasks:\n  - include_vars:\n      file: 'v/{{ kind }}.yml'\n"
        "- {hosts: web, roles: [own]}\n",
        "roles/own/tasks/main.yml": "- include_tasks: '{{ kind }}.yml'\n",
    }
    made = read(tmp_path, files, variables={"kind": "a"})
    told = [w.place for w in made.warnings if "a template names files" in w.text]
    assert told == [f"{tmp_path}/site.yml:1", f"{tmp_path}/site.yml:8"]


def test_a_secret_in_a_pattern_of_hosts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="'secret:env:web' has a secret in it"):
        read(
            tmp_path,
            {"site.yml": "- hosts: '{{ who }}'\n"},
            variables={"who": {"secret": "env web"}},
        )


def test_a_secret_is_not_read_and_a_list_of_hosts_has_no_limit(tmp_path: Path) -> None:
    files = {"site.yml": "- {hosts: all, name: '{{ word }}'}\n"}
    limit = [f"w{i}" for i in range(1, 3)] + ["d1"]
    made = read(tmp_path, files, variables={"word": {"secret": "env WORD"}}, limit=limit)
    assert made.value[0]["name"] == "secret:env:WORD"
    assert made.value[0]["hosts"] == ["w1", "w2", "d1"]
