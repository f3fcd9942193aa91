# SPDX-License-Identifier: Apache-2.0
"""Files that are written as a whole: what is replaced, what is written to, with which rights."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading

import pytest

from applier import whole_files


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


#: Takes from root what other users may not do either.
AS_ANYBODY = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


@pytest.mark.usefixtures("umask")
class TestRegularFiles:
    def test_a_new_file_follows_the_umask(self, tmp_path):
        whole_files.write(tmp_path / "new", b"text")
        assert ((tmp_path / "new").read_bytes(), mode(tmp_path / "new")) == (b"text", 0o640)

    def test_an_existing_file_keeps_its_rights(self, tmp_path):
        (tmp_path / "old").write_bytes(b"before")
        (tmp_path / "old").chmod(0o604)
        whole_files.write(tmp_path / "old", b"after")
        assert ((tmp_path / "old").read_bytes(), mode(tmp_path / "old")) == (b"after", 0o604)

    def test_a_given_mode_holds_whatever_was_there(self, tmp_path):
        (tmp_path / "old").touch(mode=0o644)
        for name in ("old", "new"):
            whole_files.write(tmp_path / name, b"state", 0o600)
            assert mode(tmp_path / name) == 0o600

    @pytest.mark.parametrize("there", [True, False])
    def test_a_link_is_followed(self, tmp_path, there):
        (tmp_path / "target").mkdir()
        if there:
            (tmp_path / "target/file").write_bytes(b"before")
        (tmp_path / "one").symlink_to("target/file")
        (tmp_path / "two").symlink_to("one")
        whole_files.write(tmp_path / "two", b"after")
        assert (tmp_path / "target/file").read_bytes() == b"after"
        assert os.readlink(tmp_path / "two") == "one"
        assert left_in(tmp_path / "target") == ["file"]

    def test_a_reader_keeps_what_it_had_opened(self, tmp_path):
        (tmp_path / "file").write_bytes(b"before")
        with open(tmp_path / "file", "rb") as reader:
            whole_files.write(tmp_path / "file", b"after")
            assert reader.read() == b"before"

    @pytest.mark.parametrize("link", [False, True])
    def test_a_file_keeps_its_names(self, tmp_path, link):
        (tmp_path / "one").write_bytes(b"longer before")
        (tmp_path / "two").hardlink_to(tmp_path / "one")
        (tmp_path / "link").symlink_to("one")
        whole_files.write(tmp_path / ("link" if link else "one"), b"after", 0o600)
        assert (tmp_path / "two").read_bytes() == b"after"
        assert mode(tmp_path / "two") == 0o600
        assert left_in(tmp_path) == ["link", "one", "two"]

    @pytest.mark.slow
    def test_a_folder_that_may_be_written_to_and_not_read_is_enough(self, tmp_path):
        script = "from applier import whole_files; whole_files.write('file', b'text')"
        command = [*(AS_ANYBODY if os.geteuid() == 0 else ()), sys.executable, "-c", script]
        tmp_path.chmod(0o300)
        try:
            subprocess.run(command, cwd=tmp_path, check=True)
        finally:
            tmp_path.chmod(0o700)
        assert left_in(tmp_path) == ["file"]

    @pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd", "/dev/./fd"])
    def test_an_open_descriptor_is_written_to(self, tmp_path, folder):
        with open(tmp_path / "file", "wb", buffering=0) as file:
            file.write(b"before, ")
            whole_files.write(f"{folder}/{file.fileno()}", b"here, ")
            file.write(b"after")
        assert (tmp_path / "file").read_bytes() == b"before, here, after"
        assert left_in(tmp_path) == ["file"]

    def test_a_closed_descriptor_is_an_error(self):
        with pytest.raises(OSError, match="Bad file descriptor"):
            whole_files.write("/dev/fd/9999", b"text")


class TestWhatIsNoRegularFile:
    def test_a_pipe_is_written_to(self, tmp_path):
        pipe, data = tmp_path / "pipe", b"text" * 100_000
        os.mkfifo(pipe)
        writer = threading.Thread(target=whole_files.write, args=(pipe, data))
        writer.start()
        assert pipe.read_bytes() == data
        writer.join()
        assert stat.S_ISFIFO(pipe.stat().st_mode)

    @pytest.mark.parametrize("link", [False, True])
    def test_a_device_is_written_to_and_stays_one(self, tmp_path, link):
        full = tmp_path / "full"
        try:
            os.mknod(full, stat.S_IFCHR | 0o666, os.stat("/dev/full").st_rdev)
            full.open("rb").close()
        except PermissionError:
            pytest.skip("only root makes a device here")
        (tmp_path / "link").symlink_to(full)
        with pytest.raises(OSError, match="No space left") as caught:
            whole_files.write(tmp_path / ("link" if link else "full"), b"text")
        assert caught.value.errno == errno.ENOSPC
        assert stat.S_ISCHR(full.stat().st_mode)
        assert left_in(tmp_path) == ["full", "link"]

    @pytest.mark.parametrize(
        ("name", "number"), [("folder", errno.EISDIR), ("loop", errno.ELOOP), ("no/f", 2)]
    )
    def test_what_cannot_be_written_is_an_error_and_leaves_nothing(self, tmp_path, name, number):
        (tmp_path / "folder").mkdir()
        (tmp_path / "loop").symlink_to("loop")
        with pytest.raises(OSError) as caught:  # noqa: PT011 - the number says which
            whole_files.write(tmp_path / name, b"text")
        assert caught.value.errno == number
        assert left_in(tmp_path) == ["folder", "loop"]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_what_is_written_to_standard_output_comes_where_that_goes(tmp_path, place, kind):
    script = (
        "import sys; from applier import whole_files; print('first')\n"
        "whole_files.write(sys.argv[1], b'whole\\n'); print('last')"
    )
    command = [sys.executable, "-c", script, place]
    if kind == "pipe":
        said = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    else:
        with open(tmp_path / "out", "ab") as out:
            subprocess.run(command, stdout=out, check=True)
        said = (tmp_path / "out").read_bytes()
    assert said == b"first\nwhole\nlast\n"
