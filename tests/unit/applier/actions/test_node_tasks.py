# SPDX-License-Identifier: Apache-2.0
"""The tasks of nodes on a real sshd: what they do there, and what they say of it."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from programs import require
from sshd import Sshd

from applier.actions import node_commands
from applier.actions.node_commands import Puppet, Reboot, Shell
from applier.actions.node_files import CopyFiles, Sync, UploadFile
from applier.contracts import ActionContext, ActionPlugin, Verified
from applier.errors import ActionFailed, JobLost
from applier.machines import following
from applier.machines.open_machines import OpenMachines
from planner.plan.states import Outcome

pytest.importorskip("asyncssh", reason="the extra 'ssh' is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.needs("sshd", "ssh-keygen")]

#: Notes its arguments, and ends as it is told to.
PUPPET = """#!/bin/sh
cd "${0%/*}"
pwd > cwd; for word; do echo "$word"; done > arguments
echo "Notice: applied"; exit "$(cat code)"
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the node in which programs are looked for first."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Iterator[Sshd]:
    environment = {"PATH": f"{programs}:{os.environ['PATH']}"}
    with Sshd(tmp_path_factory.mktemp("node") / "sshd", environment=environment) as server:
        yield server


@pytest.fixture(scope="module")
def machines(server: Sshd) -> Iterator[OpenMachines]:
    with closing(OpenMachines(server.settings())) as opened:
        yield opened


Make = Callable[..., ActionPlugin]


@pytest.fixture(params=["over SSH", "here"])
def make(request, server, machines, programs, printed, monkeypatch) -> Make:
    """Make an action that works on the node, or on this machine: what it does is the same."""
    where = {"node": "3", "address": server.address} if request.param == "over SSH" else {}
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    def made(action: type[ActionPlugin], **parameters: object) -> ActionPlugin:
        context = ActionContext(cloud=pytest.fail, output=printed.append, machines=machines)
        return action({**where, **parameters}, context)

    return made


def done(work: ActionPlugin, stop: threading.Event | None = None) -> Outcome:
    work.precheck()
    return work.execute(stop or threading.Event())


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def test_puppet_says_by_its_exit_code_what_it_did_and_that_it_is_missing(make, programs, printed):
    program(programs, "puppet", PUPPET)
    work = make(Puppet, manifest="/etc/a b.pp", modules=["/one", "/two"])
    for code, end in ((0, "ok"), (2, "changed"), (1, None), (4, None), (6, None), (3, None)):
        (programs / "code").write_text(str(code))
        if end is not None:
            assert done(work) == end
        else:
            told = f"/etc/a b.pp: exit code {code}: Notice: applied"
            with pytest.raises(ActionFailed, match=told):
                done(work)
        assert (programs / "arguments").read_text().splitlines() == [
            *("apply", "--detailed-exitcodes", "--modulepath", "/one:/two", "/etc/a b.pp")
        ]
    assert "".join(printed) == "Notice: applied\n" * 6
    (programs / "puppet").unlink()
    with pytest.raises(ActionFailed, match=r"/a.pp: .*(not found|No such file)"):
        done(make(Puppet, manifest="/a.pp"))


def test_a_shell_is_judged_there_as_it_is_here(make, tmp_path, printed):
    lines = {"ok": "nothing to do"}
    command = 'echo "$A"; pwd; echo nothing to do'
    work = make(Shell, command=command, env={"A": "b"}, cwd=str(tmp_path), outcome_lines=lines)
    assert done(work) is Outcome.OK
    assert "".join(printed) == f"b\n{tmp_path}\nnothing to do\n"
    assert done(make(Shell, argv=["sh", "-c", "exit 3"], ok_exit_codes=[3])) is Outcome.OK
    with pytest.raises(ActionFailed, match="exit code 5: no space"):
        done(make(Shell, command="echo no space; exit 5"))


def test_a_file_is_uploaded_once_and_keeps_its_mode_unless_one_is_given(make, tmp_path):
    path = tmp_path / "etc" / "motd"
    work = make(UploadFile, path=str(path), data="Größe\n", mode="0640", dir_mode="2750")
    assert work.verify() is Verified.NOT_DONE
    assert done(work) is Outcome.CHANGED
    assert work.verify() is Verified.DONE
    assert path.parent.stat().st_mode & 0o7777 == 0o2750
    path.parent.chmod(0o700)
    before = path.stat()
    assert done(work) is Outcome.OK
    # It was read, but neither written nor replaced.
    after = path.stat()
    assert (after.st_ctime_ns, after.st_ino) == (before.st_ctime_ns, before.st_ino)
    assert (path.read_text(encoding="utf-8"), before.st_mode & 0o777) == ("Größe\n", 0o640)
    path.chmod(0o600)
    assert done(work) is Outcome.CHANGED
    assert path.stat().st_mode & 0o777 == 0o640
    for file, mode in ((path, 0o640), (tmp_path / "new", 0o644)):
        assert done(make(UploadFile, path=str(file), data="two")) is Outcome.CHANGED
        assert (file.read_text(), file.stat().st_mode & 0o777) == ("two", mode)
    assert path.parent.stat().st_mode & 0o7777 == 0o700


def test_a_file_that_cannot_be_written_fails_and_leaves_nothing(make, tmp_path):
    (tmp_path / "folder").mkdir()
    work = make(UploadFile, path=str(tmp_path / "folder"), data="")
    with pytest.raises(ActionFailed, match="folder"):
        done(work)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
    assert work.verify() is Verified.IN_DOUBT


def test_files_are_copied_once(make, tmp_path):
    (tmp_path / "a").write_bytes(b"\0\xff")
    (tmp_path / "a").chmod(0o640)
    (tmp_path / "b").write_text("b")
    target = tmp_path / "there"
    files = [
        {"src": str(tmp_path / "a"), "dst": str(target / "renamed")},
        {"src": str(tmp_path / "b"), "dst": f"{target}/"},
    ]
    work = make(CopyFiles, files=files)
    assert work.verify() is Verified.NOT_DONE
    assert done(work) is Outcome.CHANGED
    assert (work.verify(), done(work)) == (Verified.DONE, Outcome.OK)
    assert (target / "renamed").read_bytes() == b"\0\xff"
    assert (target / "renamed").stat().st_mode & 0o777 == 0o640
    assert (target / "b").read_text() == "b"
    assert done(make(CopyFiles, files=files, mode="0600")) is Outcome.CHANGED
    assert {p.stat().st_mode & 0o777 for p in target.iterdir()} == {0o600}


def test_a_source_that_is_not_there_is_refused_before_anything_is_copied(make, tmp_path):
    files = [{"src": "/no/such", "dst": str(tmp_path / "x")}]
    for work in (make(CopyFiles, files=files), make(Sync, src="/no/such", dst=str(tmp_path / "x"))):
        with pytest.raises(ActionFailed, match="/no/such on this machine"):
            work.precheck()


@pytest.fixture(params=["rsync", "SFTP"])
def way(request, monkeypatch) -> str:
    if request.param == "SFTP":
        monkeypatch.setattr(shutil, "which", lambda _: None)
    else:
        require("rsync", "ssh")
    return request.param


def test_a_folder_is_made_equal_once(make, way, tmp_path):
    source, target = tmp_path / "source", tmp_path / "a target"
    (source / "sub").mkdir(parents=True)
    (source / "one").write_text("one")
    (source / "sub" / "two").write_text("two")
    (source / "sub" / "two").chmod(0o600)
    work = make(Sync, src=str(source), dst=str(target))
    assert done(work) is Outcome.CHANGED
    assert (target / "sub" / "two").read_text() == "two"
    assert (target / "sub" / "two").stat().st_mode & 0o777 == 0o600
    assert done(work) is Outcome.OK
    (target / "left over").write_text("")
    assert done(work) is Outcome.CHANGED
    assert sorted(p.name for p in target.iterdir()) == ["one", "sub"]
    (target / "one").write_text("eno")
    os.utime(target / "one", (source / "one").stat()[7:9])
    assert done(work) is Outcome.CHANGED
    assert (target / "one").read_text() == "one"
    os.utime(target / "one", (1, 1))
    assert done(work) is Outcome.OK


def test_a_single_file_is_made_equal(make, way, tmp_path):
    (tmp_path / "one").write_text("one")
    for dst in (tmp_path / "copy", f"{tmp_path}/folder/"):
        work = make(Sync, src=str(tmp_path / "one"), dst=str(dst))
        assert (done(work), done(work)) == (Outcome.CHANGED, Outcome.OK)
    assert (tmp_path / "copy").read_text() == (tmp_path / "folder" / "one").read_text() == "one"


def test_without_rsync_a_link_is_refused(make, monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "link").symlink_to("/etc/passwd")
    with pytest.raises(ActionFailed, match="link is a link"):
        done(make(Sync, src=str(tmp_path / "source"), dst=str(tmp_path / "target")))


def test_what_the_node_fetches_itself_is_fetched_by_rsync(make, programs, tmp_path):
    program(programs, "rsync", f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\n')
    try:
        work = make(Sync, src="rsync://10.0.0.1/modules", dst="/etc/puppet")
        assert done(work) is Outcome.OK
    finally:
        (programs / "rsync").unlink()
    words = (tmp_path / "arguments").read_text().split()
    assert words[-3:] == ["--", "rsync://10.0.0.1/modules", "/etc/puppet"]


@pytest.fixture
def node(server, machines, printed) -> Callable[..., Reboot]:
    def made(**parameters: object) -> Reboot:
        context = ActionContext(cloud=pytest.fail, output=printed.append, machines=machines)
        return Reboot({"node": "3", "address": server.address, **parameters}, context)

    return made


@pytest.fixture
def boots(programs, monkeypatch) -> Iterator[Path]:
    """Programs of a node that starts anew, or not, when it is told to."""
    monkeypatch.setattr(node_commands, "LOOK_S", 0.01)
    ours = f"case $1 in */boot_id) set -- {programs}/boot_id;; esac"
    program(programs, "cat", f'#!/bin/sh\n{ours}\nexec {shutil.which("cat")} "$@"\n')
    (programs / "boot_id").write_text("first\n")
    yield programs
    for name in ("cat", "reboot"):
        (programs / name).unlink(missing_ok=True)


def test_a_node_is_restarted_once_its_boot_id_is_another(boots, node):
    program(boots, "reboot", f"#!/bin/sh\n(sleep 0.3; echo second > {boots}/boot_id) &\n")
    work = node()
    assert work.verify() is Verified.IN_DOUBT
    assert done(work) is Outcome.CHANGED
    assert work.verify() is Verified.DONE


def test_a_restart_that_takes_the_connection_with_it_is_no_failure(boots, node):
    # The session's sshd is the parent of the shell that is told to start it anew.
    text = f"#!/bin/sh\necho second > {boots}/boot_id; kill -9 $PPID; sleep 1\n"
    program(boots, "reboot", text)
    assert done(node()) is Outcome.CHANGED


def test_a_node_that_refuses_while_it_starts_is_waited_for(boots, node):
    """The programs that it lacks meanwhile are no failure, as little as logins that it refuses."""
    (boots / "boot_id").write_text("first\n")
    gone = f"mv {boots}/cat {boots}/tac; cp {boots}/cat-fails {boots}/cat"
    back = f"echo second > {boots}/boot_id; mv {boots}/tac {boots}/cat"
    program(boots, "cat-fails", "#!/bin/sh\nexit 1\n")
    program(boots, "reboot", f"#!/bin/sh\n{gone}\n(sleep 0.5; {back}) &\n")
    assert done(node()) is Outcome.CHANGED


def test_a_node_that_does_not_restart_fails(boots, node, monkeypatch):
    monkeypatch.setattr(node_commands, "BACK_S", 0.2)
    program(boots, "reboot", "#!/bin/sh\n")
    work = node()
    with pytest.raises(ActionFailed, match=r"within 0\.2 s: it is up as before"):
        done(work)
    assert work.verify() is Verified.NOT_DONE
    program(boots, "reboot", "#!/bin/sh\necho not root; exit 1\n")
    with pytest.raises(ActionFailed, match="reboot: exit code 1: not root"):
        done(node())


def test_a_restart_that_a_stop_could_not_end_may_still_come(boots, server, machines, monkeypatch):
    """Its wrapper is stopped, and so never tells its exit code."""
    monkeypatch.setattr(following, "GRACE_S", 0.2)
    text = f"kill -STOP $PPID; echo $PPID > {boots}/wrapper; echo begun; exec sleep 1000"
    program(boots, "reboot", f"#!/bin/sh\n{text}\n")
    stop = threading.Event()
    context = ActionContext(cloud=pytest.fail, output=lambda _: stop.set(), machines=machines)
    work = Reboot({"node": "3", "address": server.address}, context)
    try:
        with pytest.raises(JobLost, match="could not be ended and goes on"):
            done(work, stop)
    finally:
        os.kill(int((boots / "wrapper").read_text()), signal.SIGKILL)


class StopsOnceItIsWaitedFor(threading.Event):
    """Set as soon as an action waits for it."""

    def wait(self, timeout: float | None = None) -> bool:
        self.set()
        return True


def test_a_stop_ends_the_wait_for_a_node(boots, node):
    program(boots, "reboot", "#!/bin/sh\n")
    with pytest.raises(ActionFailed, match="stopped before the node was back"):
        done(node(), StopsOnceItIsWaitedFor())
