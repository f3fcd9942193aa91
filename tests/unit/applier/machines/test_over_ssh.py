# SPDX-License-Identifier: Apache-2.0
"""Programs and files on nodes that are reached over SSH: a real sshd, real connections."""

from __future__ import annotations

import os
import signal
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from command_line import PATIENCE_S, wait_until
from sshd import HOUR_S, Sshd, hurry, lives, make_key

from applier.contracts import Machine
from applier.errors import ActionFailed, JobLost
from applier.machines import following, ssh_jobs
from applier.machines.connections import Connections
from applier.machines.open_machines import OpenMachines

pytest.importorskip("asyncssh", reason="the extra 'ssh' is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.needs("sshd", "ssh-keygen")]


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Sshd(tmp_path_factory.mktemp("node") / "sshd") as server:
        yield server


@pytest.fixture
def own_sshd(tmp_path: Path) -> Iterator[Sshd]:
    """One that a test may break."""
    with Sshd(tmp_path / "sshd") as server:
        yield server


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a loaded machine all its time to answer the request to end a command."""
    monkeypatch.setattr(ssh_jobs, "_ANSWER_S", PATIENCE_S)


Open = Callable[..., Machine]


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def open_machine(stop: threading.Event) -> Iterator[Open]:
    """Open the node of a server, or an address, with other settings, in a pool of its own."""
    opened = []

    def open_(server: Sshd, address: str = "", **settings: Any) -> Machine:
        opened.append(OpenMachines(server.settings(**settings)))
        return opened[-1].machine(address or server.address, stop)

    yield open_
    for machines in opened:
        machines.close()


@pytest.fixture
def node(sshd: Sshd, open_machine: Open) -> Machine:
    return open_machine(sshd)


@pytest.fixture
def printed() -> list[str]:
    return []


class Numbers:
    """Keeps the numbers of the processes that a command prints, and tells when there are two."""

    def __init__(self) -> None:
        self.text, self.there = "", threading.Event()

    def __call__(self, text: str) -> None:
        self.text += text
        if len(self.pids) == 2:
            self.there.set()

    @property
    def pids(self) -> list[int]:
        """The first two lines; a shell whose child is killed before it may print "Killed", too."""
        lines = self.text.splitlines(keepends=True)[:2]
        return [int(line) for line in lines if line.endswith("\n")]


#: What a session of sshd was given to run.
GIVEN = '"$SSH_ORIGINAL_COMMAND"'
#: A group of two: it prints its numbers, and never returns.
NEVER = ["/bin/sh", "-c", "sleep 1000 & echo $$; echo $!; wait; echo not reached"]


def test_a_program_runs_as_it_was_told_and_its_end_is_told_as_that_of_a_child(
    sshd, node, printed, tmp_path
):
    """No shell of the node reads an argument, and no list of processes has a variable."""
    odd = ["$HOME; echo no", "a  b", "it's", "", "*"]
    ended = node.run(["printf", "%s|", *odd], output=printed.append)
    assert (ended.code, ended.why, "".join(printed)) == (0, None, f"{'|'.join(odd)}|")
    printed.clear()
    folder, shows = tmp_path / "a folder", "ps -eo args | grep -c '[h]unter2'"
    folder.mkdir()
    program = ["/bin/sh", "-c", f'pwd; echo $HOME; echo "$ADDED"; cat; {shows}; echo end >&2']
    node.run(program, output=printed.append, env={"ADDED": "it's hunter2"}, cwd=str(folder))
    assert "".join(printed) == f"{folder}\n{sshd.folder}\nit's hunter2\n0\nend\n"
    for line, code, last in (
        ("echo one; echo two; exit 7", 7, "two"),
        ("kill -KILL $$", -signal.SIGKILL, ""),
        ("printf '\\303'; sleep 0.01; printf '\\244'", 0, "ä"),
    ):
        ended = node.run(["/bin/sh", "-c", line], output=printed.append)
        assert (ended.code, ended.why, ended.last_line) == (code, None, last)
    for program, more, code, last in (
        (["/no/such"], {}, 127, "not found"),
        (["true"], {"cwd": "/no/such"}, 126, "/no/such"),
    ):
        ended = node.run(program, output=printed.append, **more)
        assert (ended.code, last in ended.last_line) == (code, True)
    for env in ({"a-b": "1"}, {"A": "\0"}):
        with pytest.raises(ValueError, match=r"a-b|NUL"):
            node.run(["true"], output=printed.append, env=env)


@pytest.mark.parametrize(
    ("force", "code", "said"),
    [
        # In the place of a start-up file of the user's shell.
        (
            f"echo welcome; echo careful >&2; printf 'no end'; eval {GIVEN}",
            0,
            "one",
        ),
        ("echo This account is not available. >&2; exit 1", 1, "This account is not available."),
    ],
)
def test_what_start_up_files_print_is_no_output_and_a_node_that_runs_nothing_says_so(
    tmp_path, open_machine, printed, force, code, said
):
    (tmp_path / "force").write_text(f"{force}\n")
    with Sshd(tmp_path / "sshd", more=f"ForceCommand . {tmp_path}/force") as server:
        for _ in range(3):
            ended = open_machine(server).run(["echo", "one"], output=printed.append)
            assert (ended.code, ended.last_line) == (code, said)
    assert code or "".join(printed) == "one\n" * 3


@pytest.mark.parametrize("why", ["timeout", "stop", pytest.param("deaf", marks=pytest.mark.long)])
def test_a_program_that_never_returns_is_ended_with_all_its_group(node, stop, monkeypatch, why):
    monkeypatch.setattr(ssh_jobs, "_ANSWER_S", HOUR_S)
    if why == "deaf":
        monkeypatch.setattr(following, "GRACE_S", 0.2)
    numbers = Numbers()
    program = ["/bin/sh", "-c", f"trap '' TERM; {NEVER[2]}; wait"] if why == "deaf" else NEVER
    if why == "stop":
        ending = lambda: numbers.there.wait(PATIENCE_S) and stop.set()  # noqa: E731
        threading.Thread(target=ending, daemon=True).start()
    else:
        hurry(monkeypatch, numbers.there.is_set)
    ended = node.run(program, output=numbers, timeout_s=None if why == "stop" else HOUR_S)
    codes = (-signal.SIGKILL,) if why == "deaf" else (-signal.SIGTERM, 128 + signal.SIGTERM)
    assert (ended.why, ended.code in codes) == ("stop" if why == "stop" else "timeout", True)
    assert len(numbers.pids) == 2
    assert not any(map(lives, numbers.pids))


def test_output_that_is_taken_slowly_is_not_lost(node):
    """Its reader needs longer than a node is waited for when its shell has ended."""
    sizes = []

    def count(text: str) -> None:
        sizes.append(len(text))
        threading.Event().wait(0.02)

    # More than is kept here and on the way.
    line = "head -c 6000000 /dev/zero | tr '\\0' x"
    assert node.run(["/bin/sh", "-c", line], output=count).code == 0
    assert sum(sizes) == 6_000_000


@pytest.mark.long
def test_output_without_end_takes_bounded_room_on_the_node(own_sshd, open_machine, tmp_path):
    """A follower that is slower than the command goes on with what is left."""
    jobs, go = own_sshd.jobs, tmp_path / "go"
    texts: list[str] = []

    def slow(text: str) -> None:
        if not texts:
            (out,) = jobs.glob("*/out")
            wait_until(lambda: has_been_trimmed(out))
            go.touch()
        texts.append(text)

    def has_been_trimmed(out: Path) -> bool:
        """Return whether it is whole and takes little room, and no more of it will be dropped."""
        dropped = out.with_name("dropped")
        if out.stat().st_size < 100_000_000 or not dropped.exists():
            return False
        left = out.stat().st_size - int(dropped.read_text())
        return left <= 32 << 20 and out.stat().st_blocks * 512 <= 34_000_000

    flood = "head -c 100000000 /dev/zero | tr '\\0' x"
    line = f"{flood}; while [ ! -e {go} ]; do sleep 0.02; done; echo; echo end; exit 3"
    ended = open_machine(own_sshd).run(["/bin/sh", "-c", line], output=slow)
    assert (ended.code, ended.last_line) == (3, "end")
    said = [text for text in texts if "bytes of output were dropped" in text]
    assert len(said) == 1
    dropped = int(said[0].strip("\n[").partition(" ")[0])
    passed_on = sum(map(len, texts)) - len(said[0])
    assert passed_on == 100_000_005 - dropped
    assert not any("\0" in text for text in texts), "what was dropped reads as NUL"


def pump(source: socket.socket, target: socket.socket, bytes_per_s: float) -> None:
    """Pass on what comes from a socket, at most so fast, until one of the two is closed."""
    with suppress(OSError):
        while data := source.recv(16384):
            target.sendall(data)
            threading.Event().wait(len(data) / bytes_per_s)


@pytest.fixture
def slow_link(own_sshd: Sshd) -> Iterator[int]:
    """The port of a link to a node, over which 1 MB a second comes back."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket() as there,
        ExitStack() as end,
    ):
        # Little is kept in the link itself.
        there.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        there.connect((own_sshd.host, own_sshd.port))

        def serve() -> None:
            here = end.enter_context(listener.accept()[0])
            threading.Thread(target=pump, args=(here, there, 1e9), daemon=True).start()
            pump(there, here, 1e6)

        threading.Thread(target=serve, daemon=True).start()
        yield int(listener.getsockname()[1])


@pytest.mark.long
def test_a_stop_ends_one_whose_output_is_still_on_its_way(
    own_sshd, slow_link, open_machine, stop, monkeypatch
):
    monkeypatch.setattr(ssh_jobs, "_ANSWER_S", HOUR_S)
    jobs = own_sshd.jobs

    def end_once_it_is_written(_: str) -> None:
        if not stop.is_set():
            (out,) = jobs.glob("*/out")
            wait_until(lambda: out.stat().st_size >= 20_000_000)
            stop.set()

    own_sshd.known_hosts.write_text(own_sshd.known().replace(str(own_sshd.port), str(slow_link)))
    line = "head -c 20000000 /dev/zero | tr '\\0' x; sleep 1000"
    node = open_machine(own_sshd, f"127.0.0.1:{slow_link}")
    ended = node.run(["/bin/sh", "-c", line], output=end_once_it_is_written)
    assert (ended.code, ended.why) == (-signal.SIGTERM, "stop")


def test_an_output_that_breaks_ends_the_program(node, monkeypatch):
    """Before its folder is removed, because a job without a folder counts as ended."""
    pids, had_ended, remove = [], [], Connections.remove_jobs

    def remove_jobs(*given):
        had_ended.append(not lives(pids[0]))
        return remove(*given)

    def broken(text: str) -> None:
        pids.extend(map(int, text.split()))
        raise RuntimeError("the record is gone")

    monkeypatch.setattr(Connections, "remove_jobs", remove_jobs)
    with pytest.raises(RuntimeError, match="the record is gone"):
        node.run(["/bin/sh", "-c", "echo $$; exec sleep 1000"], output=broken)
    assert had_ended == [True]


def test_one_connection_serves_all_and_is_made_anew_once_it_died(own_sshd, open_machine, tmp_path):
    node = open_machine(own_sshd)
    with ThreadPoolExecutor(5) as pool:
        ends = [pool.submit(node.run, ["true"], output=print) for _ in range(5)]
        assert {end.result().code for end in ends} == {0}
    node.write(str(tmp_path / "file"), b"one", 0o600)
    assert node.read(str(tmp_path / "file")).data == b"one"
    assert own_sshd.accepted == 1
    own_sshd.end_sessions()
    assert node.run(["true"], output=print).code == 0
    own_sshd.end_sessions()
    assert node.read("/no/such") is None
    assert own_sshd.accepted == 3


class Loses:
    """Keeps the output, and does something once, when the first of it comes."""

    def __init__(self, lose: Callable[[], None]) -> None:
        self.text, self._lose = "", lose

    def __call__(self, text: str) -> None:
        first, self.text = not self.text, self.text + text
        if first:
            self._lose()


def restart(server: Sshd) -> None:
    server.kill()
    server.start()


@pytest.mark.long
@pytest.mark.parametrize("lose", [Sshd.end_sessions, restart])
def test_a_connection_that_is_lost_midway_is_made_again_and_nothing_runs_twice(
    own_sshd, open_machine, tmp_path, lose
):
    """The output is whole, whatever of it came before."""
    node, runs, go = open_machine(own_sshd), tmp_path / "runs", tmp_path / "go"

    def lose_and_go() -> None:
        lose(own_sshd)
        go.touch()

    waits = f"while [ -d {tmp_path} ] && [ ! -e {go} ]; do sleep 0.02; done"
    command = f"echo once >> {runs}; printf 'begun\\342'; {waits}; printf '\\202\\254\\n'; exit 7"
    ended = node.run(["/bin/sh", "-c", command], output=(printed := Loses(lose_and_go)))
    assert (ended.code, ended.last_line, printed.text) == (7, "begun€", "begun€\n")
    assert runs.read_text() == "once\n"


@pytest.mark.long
def test_a_node_that_restarts_under_a_command_is_told_from_one_that_is_not_reached(
    own_sshd, open_machine, tmp_path
):
    node, place = open_machine(own_sshd), own_sshd.jobs

    def reboot() -> None:
        own_sshd.kill()
        (folder,) = place.iterdir()
        pid, start, _, up = (folder / "pid").read_text().split()
        os.killpg(int(pid), signal.SIGKILL)
        (folder / "pid").write_text(f"{pid} {start} the-boot-before {up}\n")
        own_sshd.start()

    command = f"echo begun; while [ -d {tmp_path} ]; do sleep 0.05; done"
    with pytest.raises(JobLost) as lost:
        node.run(["/bin/sh", "-c", command], output=Loses(reboot))
    assert lost.value.is_over
    assert str(lost.value).startswith(f"127.0.0.1 port {own_sshd.port}: ")


@pytest.mark.long
def test_a_stop_while_the_connection_is_lost_reaches_the_command_on_the_next_one(
    own_sshd, open_machine, stop, monkeypatch
):
    monkeypatch.setattr(ssh_jobs, "_ANSWER_S", HOUR_S)
    numbers = Numbers()

    def cut(text: str) -> None:
        numbers(text)
        if numbers.there.is_set() and not stop.is_set():
            own_sshd.end_sessions()
            stop.set()

    ended = open_machine(own_sshd).run(NEVER, output=cut)
    assert ended.why == "stop"
    assert not any(map(lives, numbers.pids))


def test_a_node_that_is_gone_or_never_answers_is_an_error(own_sshd, open_machine, stop, printed):
    node = open_machine(own_sshd)
    node.run(["true"], output=printed.append)
    own_sshd.kill()
    with pytest.raises(ConnectionError, match=r"127\S+ port \d+: Connection ref"):
        node.run(["true"], output=printed.append)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        for patience_s, timeout_s, told in (
            (0.2, None, r"does not answer within 0\.2 s"),
            (PATIENCE_S, 0.1, r"was not reached within 0\.1 s"),
        ):
            node = open_machine(own_sshd, address, connect_timeout_s=patience_s)
            with pytest.raises(ConnectionError, match=told):
                node.run(["true"], output=printed.append, timeout_s=timeout_s)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address, accepted = f"127.0.0.1:{silent.getsockname()[1]}", []
        node = open_machine(own_sshd, address)

        def accept() -> None:
            accepted.append(silent.accept()[0])
            stop.set()

        threading.Thread(target=accept, daemon=True).start()
        with pytest.raises(ActionFailed, match="stopped before it was reached"):
            node.run(["true"], output=printed.append)
        accepted[0].close()


def test_a_host_or_a_key_that_is_not_known_is_refused_with_what_to_do(
    own_sshd, open_machine, tmp_path
):
    def refused(**settings: Any) -> str:
        with pytest.raises(ActionFailed) as refusal:
            open_machine(own_sshd, **settings).run(["true"], output=print)
        return str(refusal.value)

    known, other, none = (tmp_path / name for name in ("known_hosts", "other", "none"))
    make_key(other)
    where = f"127.0.0.1 port {own_sshd.port}"
    for file, content in ((known, ""), (known, "[127.0.0.1]:1 ssh-ed25519 AAAA\n"), (none, None)):
        if content is not None:
            known.write_text(content)
        advice = f"ssh-keyscan -p {own_sshd.port} 127.0.0.1 >> {file} adds it"
        told = refused(known_hosts=str(file))
        assert all(text in told for text in (f"{file} has no host key of {where}", advice))
    for file, said in (
        (other, "accepts none of the keys: Permission denied for user"),
        (known, "no connection to 127"),
        (none, f"No such file or directory: {none}"),
    ):
        assert said in refused(keys=(str(file),))
    own_sshd.kill()
    make_key(own_sshd.folder / "host_key")
    own_sshd.start()
    told = refused()
    assert f"host key of {where} is not the one that /" in told
    assert f"ssh-keygen -R '[127.0.0.1]:{own_sshd.port}' -f /" in told
    assert own_sshd.accepted == 0


def test_a_file_is_replaced_as_a_whole_with_its_mode(node, tmp_path):
    path = tmp_path / "a" / "b c" / "file"
    node.write(str(path), b"one\n" * 100_000, 0o640)
    before = path.stat()
    node.write(str(path), b"two", 0o600)
    after = path.stat()
    assert (before.st_mode & 0o777, after.st_mode & 0o777) == (0o640, 0o600)
    assert before.st_ino != after.st_ino
    assert node.read(str(path)) == (b"two", 0o600)
    assert node.files(str(tmp_path / "a")) == ["b c/file"]
    node.remove(str(path))
    node.remove(str(path))
    assert node.read(str(path)) is None
    assert list(path.parent.iterdir()) == []


def test_a_link_is_followed_and_what_cannot_be_written_is_a_failure_that_names_the_path(
    node, tmp_path
):
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to("target")
    for data in (b"made", b"after"):
        node.write(str(link), data, 0o640)
        assert (target.read_bytes(), target.stat().st_mode & 0o777) == (data, 0o640)
        assert link.is_symlink()
    for path in (target / "below", tmp_path):
        with pytest.raises(ActionFailed, match=f"{tmp_path}"):
            node.write(str(path), b"", 0o600)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "target"]
    assert node.files(str(tmp_path / "none")) == []
    full = tmp_path / "full"
    try:
        os.mknod(full, stat.S_IFCHR | 0o666, os.stat("/dev/full").st_rdev)
        full.open("rb").close()
    except PermissionError:
        pytest.skip("only root makes a device here")
    with pytest.raises(ActionFailed, match="full: "):
        node.write(str(full), b"text", 0o600)
    assert stat.S_ISCHR(full.stat().st_mode)


def test_a_server_without_sftp_says_what_is_missing(tmp_path, open_machine, printed):
    with Sshd(tmp_path / "sshd", sftp="") as server:
        machine = open_machine(server)
        assert machine.run(["echo", "x"], output=printed.append).last_line == "x"
        with pytest.raises(ActionFailed, match="sftp"):
            machine.write(str(tmp_path / "x"), b"x", 0o600)
