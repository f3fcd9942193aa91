# SPDX-License-Identifier: Apache-2.0
"""Playbooks, roles and modules of Ansible as actions: the real Ansible, hosts on the loopback."""

from __future__ import annotations

import re
import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import environments
import pytest
from command_line import wait_until
from sshd import Sshd, lives

from applier.actions.ansible import Ansible
from applier.contracts import ActionContext
from applier.errors import ActionFailed
from applier.machines.open_machines import OpenMachines
from applier.secret_values import resolve
from planner.documents import inventory
from planner.plan.states import Outcome

pytestmark = pytest.mark.slow
LOCAL = "ansible_connection=local ansible_python_interpreter='{{ ansible_playbook_python }}'"
SITE = """\
- name: not asked for
  hosts: all
  gather_facts: false
  tasks: [{name: never, file: {path: "{{ playbook_dir }}/never", state: touch}}]
- import_playbook: inner/inner.yml
- name: not asked for either
  hosts: all
  gather_facts: false
  tasks: [{name: never, file: {path: "{{ playbook_dir }}/never", state: touch}}]
"""
INNER = """\
- name: asked for
  hosts: all
  gather_facts: false
  tasks:
  - name: write
    template: {src: word.j2, dest: "{{ playbook_dir }}/{{ inventory_hostname }}.txt"}
    when: inventory_hostname != 'c'
  - name: break
    command: sh -c 'echo out of order >&2; exit 3'
    when: inventory_hostname in ('b', 'e')
  - name: forgiven
    command: /bin/false
    ignore_errors: true
"""


@pytest.fixture(
    params=["newest", pytest.param("oldest", marks=pytest.mark.long)], ids=lambda name: name
)
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the installed version, or the oldest that is supported."""
    if request.param == "oldest":
        oldest = environments.require_made(environments.ANSIBLE)
        monkeypatch.setattr(inventory, "program", lambda name: str(oldest.program(name)))


class Runs:
    """Runs actions of the type in a folder, each as the only attempt of an action."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.stop, self.printed = folder, threading.Event(), list[str]()
        self.machines = OpenMachines(place=folder / "jobs")
        # A stop ends all that carries the name, in other tests as well.
        self._plan, self._number = uuid4().hex, 0

    def action(self, **parameters: Any) -> Ansible:
        """Return an action with these parameters; secrets among them are read."""
        self._number += 1
        self.attempt = self.machines.of_attempt(self._plan, str(self._number), 1)
        known, _ = resolve(parameters, Ansible.SCHEMA)
        context = ActionContext(
            cloud=lambda: None,  # type: ignore[arg-type, return-value]
            output=self.printed.append,
            machines=self.attempt,
        )
        return Ansible(known, context)

    def __call__(self, **parameters: Any) -> Outcome:
        self.printed.clear()
        action = self.action(**parameters)
        action.precheck()
        return action.execute(self.stop)

    @property
    def output(self) -> str:
        return "".join(self.printed)

    def file(self, name: str, text: str) -> str:
        """Write a file; return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Runs]:
    made = Runs(tmp_path)
    yield made
    made.stop.set()
    made.machines.close()


@pytest.fixture
def hosts(run: Runs) -> str:
    """The path of an inventory: a, b, c, e are this machine, and nothing answers where d is."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    lines = [f"{name} {LOCAL}" for name in "abce"]
    gone = f"d ansible_host=127.0.0.1 ansible_port={port}"
    return run.file("hosts.ini", "\n".join([*lines, gone, ""]))


@pytest.mark.usefixtures("version")
def test_one_play_runs_in_its_place_and_each_host_is_told(run, hosts):
    run.file("inner/inner.yml", INNER)
    run.file("inner/templates/word.j2", "{{ word }}")
    given = {"playbook": run.file("site.yml", SITE), "play": 1, "inventory": hosts}
    with pytest.raises(ActionFailed) as failed:
        run(**given, variables={"word": "a b"})
    assert "b, e: failed at 'break': non-zero return code: out of order" in str(failed.value)
    assert "d: unreachable at 'write': " in str(failed.value)
    assert not re.search(r"\b[ac]\b.*: (failed|unreachable)", str(failed.value))
    assert (run.folder / "inner/a.txt").read_text() == "a b"
    assert not list(run.folder.rglob("never"))
    assert "PLAY asked for\nTASK write\n" in run.output
    assert "  failed, ignored: c: non-zero return code" in run.output
    assert "\x1e" not in run.output
    with pytest.raises(ActionFailed, match="no play 3: the playbook has 3, from 0"):
        run(**{**given, "play": 3})
    with pytest.raises(ActionFailed, match="not in the inventory: nobody"):
        run(**given, hosts=["a", "nobody"], variables={"word": "other"})
    assert (run.folder / "inner/a.txt").read_text() == "a b"


@pytest.mark.usefixtures("version")
def test_what_changes_is_changed_then_ok_and_a_dry_run_only_looks(run, hosts):
    given = {
        "module": "copy",
        "arguments": {"content": "x\n", "dest": f"{run.folder}/{{{{ inventory_hostname }}}}"},
        "inventory": [hosts],
        "hosts": ["a", "b"],
    }
    told = run.action(**given).dry_run()
    assert told is not None
    assert set(re.findall(r"\b[abc]\b", told)) == {"a", "b"}
    assert "+x" in run.output
    assert not (run.folder / "a").exists()
    assert run(**given) is Outcome.CHANGED
    assert run(**given) is Outcome.OK
    assert run.action(**given).dry_run() == "would change nothing"
    assert run(module="command", arguments="echo hello") is Outcome.CHANGED
    assert "  changed: localhost\nhello\n" in run.output
    assert run.action(module="command", arguments="id").dry_run() == (
        "would change nothing; not looked at: command"
    )


TAGGED = """\
- hosts: all
  gather_facts: false
  vars: {here: "{{ playbook_dir }}/{{ inventory_hostname }}"}
  tasks:
  - {name: one, tags: [early], file: {path: "{{ here }}-one", state: touch}}
  - {name: two, tags: [early, slow], file: {path: "{{ here }}-two", state: touch}}
  - {name: three, file: {path: "{{ here }}-three", state: touch}}
  - {name: four, tags: [early], copy: {content: "{{ ansible_forks }}", dest: "{{ here }}.forks"}}
"""


@pytest.mark.usefixtures("version")
def test_a_module_that_does_not_run_is_told_with_what_was_printed_instead(run):
    hosts = run.file(
        "hosts.ini", "a ansible_connection=local ansible_python_interpreter=/no/python\n"
    )
    with pytest.raises(ActionFailed, match=r"a: failed at 'command': .*/no/python.*not found"):
        run(module="command", arguments="true", inventory=hosts)


@pytest.mark.usefixtures("version")
def test_tags_choose_tasks_and_a_role_is_looked_for_where_it_is(run, hosts):
    given = {"playbook": run.file("site.yml", TAGGED), "inventory": hosts, "hosts": ["a", "c"]}
    run(**given, tags=["early"], skip_tags=["slow"], forks=1)
    assert sorted(path.name for path in run.folder.glob("?-*")) == ["a-one", "c-one"]
    assert (run.folder / "a.forks").read_text() == "1"
    tasks = '- copy: {content: "{{ word }}", dest: "{{ role_path }}/{{ inventory_hostname }}"}\n'
    run.file("roles/note/tasks/main.yml", tasks)
    role = str(run.folder / "roles/note")
    parameters = {"role": role, "inventory": hosts, "hosts": ["c"], "variables": {"word": "x"}}
    assert run(**parameters) is Outcome.CHANGED
    assert run(**parameters) is Outcome.OK
    assert (Path(role) / "c").read_text() == "x"


TWO_PLAYS = """\
- {hosts: "a:e", gather_facts: false, tasks: [{debug: {}}]}
- {hosts: "c:fe80::1", gather_facts: false, tasks: [{debug: {}}]}
- {hosts: nobody, gather_facts: false, tasks: [{debug: {}}]}
"""


@pytest.mark.usefixtures("version")
def test_a_host_for_which_nothing_runs_is_no_success(run, hosts):
    given = {"playbook": run.file("site.yml", TWO_PLAYS), "inventory": hosts}
    assert run(**given, play=0, hosts=["a", "e"]) is Outcome.OK
    with pytest.raises(ActionFailed, match="the play is not for b, c: nothing ran"):
        run(**given, play=0, hosts=["b", "a", "c"])
    assert "TASK" not in run.output
    with pytest.raises(ActionFailed, match="the play is not for a: nothing ran"):
        run(**given, play=2, hosts=["a"])
    with pytest.raises(ActionFailed, match="b, c: failed: no play of the playbook is for it"):
        run(**given, hosts=["b", "a", "c"])
    assert "ok: a\n" in run.output
    with pytest.raises(ActionFailed, match="nothing ran: no play is for a host"):
        run(**given, play=2)


@pytest.mark.usefixtures("version")
def test_the_machine_itself_needs_not_be_in_the_inventory(run, hosts):
    site = "- {hosts: 'localhost:a', gather_facts: false, tasks: [{debug: {}}]}\n"
    given = {"playbook": run.file("site.yml", site), "inventory": hosts, "play": 0}
    for chosen in (["localhost"], ["localhost", "a"]):
        assert run(**given, hosts=chosen) is Outcome.OK
        ran = [line.split(": ")[1] for line in run.output.splitlines() if "  ok: " in line]
        assert ran == chosen[::-1] or ran == chosen
    other = run.file("other.yml", site.replace("localhost:", ""))
    with pytest.raises(ActionFailed, match="the play is not for localhost: nothing ran"):
        run(**{**given, "playbook": other}, hosts=["localhost"])


@pytest.mark.usefixtures("version")
def test_why_a_host_failed_is_not_what_was_ignored_after_it(run, hosts):
    task = "{name: %s, command: sh -c 'echo %s >&2; exit 3'%s}"
    broken, late = task % ("break", "broken", ""), task % ("late", "x", ", ignore_errors: true")
    text = (
        f"- hosts: a\n  gather_facts: false\n  tasks: [{{block: [{broken}], always: [{late}]}}]\n"
    )
    with pytest.raises(ActionFailed, match=r"a: failed at 'break': .*broken"):
        run(playbook=run.file("site.yml", text), inventory=hosts)
    assert "failed, ignored: a" in run.output


@pytest.mark.usefixtures("version")
def test_many_hosts_addresses_and_large_variables_reach_it(run):
    """Linux takes no argument, and no variable of the environment, of more than 128 KiB."""
    names = ["fe80::1", "::1", *(f"{'x' * 60}-{i}" for i in range(3000))]
    lines = "\n".join(f"{name} {LOCAL}" for name in names)
    inventory = run.file("hosts.ini", f"{lines}\n")
    text = "- {hosts: all, gather_facts: false, tasks: [{debug: {}, run_once: true}]}\n"
    assert run(playbook=run.file("all.yml", text), inventory=inventory, hosts=names) is Outcome.OK
    word = "ü\n" * 100_000
    copy = {"content": "{{ word }}", "dest": f"{run.folder}/word"}
    given = {"inventory": inventory, "hosts": names[:1], "variables": {"word": word}}
    assert run(module="copy", arguments=copy, **given) is Outcome.CHANGED
    assert (run.folder / "word").read_text() == word


@pytest.mark.usefixtures("version")
def test_secrets_reach_ansible_and_nobody_else(run, hosts):
    """Neither processes nor files that others can read show them; no template is made of them."""
    word = run.file("word", "swordfish {{ x }}")
    password = run.file("password", "opensesame")
    treasure = run.file("inner/group_vars/all.yml", "treasure: gold\n")
    encrypt = Path(str(inventory.program("ansible-playbook"))).with_name("ansible-vault")
    given = ["encrypt", "--vault-password-file", password, treasure]
    subprocess.run([encrypt, *given], check=True, capture_output=True)
    playbook = f"""\
- hosts: a
  gather_facts: false
  tasks:
  - copy: {{content: "{{{{ word }}}} {{{{ treasure }}}}", dest: "{run.folder}/written"}}
  - shell: "(ps -wweo args; env) >{run.folder}/seen; ls -lR {run.folder}/jobs >{run.folder}/modes"
"""
    run(
        playbook=run.file("inner/site.yml", playbook),
        inventory=hosts,
        hosts=["a"],
        variables={"word": {"secret": f"file {word}"}},
        vault_password={"secret": f"file {password}"},
    )
    assert (run.folder / "written").read_text() == "swordfish {{ x }} gold"
    seen = (run.folder / "seen").read_text()
    assert "ansible-playbook" in seen
    assert "ACTIONPLAN_JOB=" in seen
    assert not re.search("swordfish|opensesame|ACTIONPLAN_VARIABLES", seen + run.output)
    modes = (run.folder / "modes").read_text()
    assert re.findall(r"(\S+) .* (?:vault|variables\.yml)\n", modes) == ["-rw-------"] * 2
    assert stat.S_IMODE((run.folder / "jobs").stat().st_mode) == 0o700
    run.attempt.forget()
    assert not [path for path in (run.folder / "jobs").rglob("*") if path.is_file()]


@pytest.mark.usefixtures("version")
def test_a_stop_ends_ansible_and_what_it_runs_here(run):
    begun = run.folder / "begun"
    arguments = f"echo $$ > {begun}.new; mv {begun}.new {begun}; exec sleep 1000"
    failed: list[str] = []

    def work() -> None:
        try:
            run(module="shell", arguments=arguments)
        except ActionFailed as reason:
            failed.append(str(reason))

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(begun.exists)
    run.stop.set()
    thread.join()
    assert "stopped after" in failed[0]
    assert not lives(int(begun.read_text()))


# Over SSH


@pytest.mark.needs("sshd", "ssh-keygen", "ssh")
def test_a_node_with_an_address_is_reached_as_by_other_actions(tmp_path):
    pytest.importorskip("asyncssh", reason="the extra 'ssh' is not installed")
    with Sshd(tmp_path / "sshd") as server:
        run = Runs(tmp_path)
        run.machines = OpenMachines(server.settings(), place=tmp_path / "jobs")
        given = {"node": "web-1", "address": server.address}
        server.known_hosts.write_text("")
        with pytest.raises(ActionFailed, match="web-1: unreachable at 'command': "):
            run(module="command", arguments="id", **given)
        server.known_hosts.write_text(server.known())
        assert run(module="command", arguments="printenv HOME", **given) is Outcome.CHANGED
        assert f"  changed: web-1\n{server.folder}\n" in run.output
        run.machines.close()
