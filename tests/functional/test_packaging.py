# SPDX-License-Identifier: Apache-2.0
"""Source distribution and wheel: what is in them, and that the product runs from the wheel.

Both are built from a copy of the checkout, the wheel from the unpacked source distribution. Nothing
is fetched: this environment's setuptools builds them, and the environment that the wheel is
installed into sees what this one has installed, except ActionPlan.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
TAG = "9.8.7"
#: What a source distribution holds besides the files of the checkout.
WRITTEN = {"PKG-INFO"}
#: What builds, runs and editors leave in a checkout, and is never packed.
LEFT = (
    "applier/.applier.swp",
    "applier/__pycache__/digest.cpython-311.pyc",
    "build/lib/applier/__init__.py",
    "tools/.DS_Store",
    "doc/_build/html/index.html",
    "etc/compose.yaml~",
    "etc/examples/#solution.yaml#",
    "etc/examples/.#solution.yaml",
    "etc/examples/events/conf/rmq.conf.orig",
    "etc/examples/events/site/made",
    "etc/examples/plugin/build/lib/rackplan/__init__.py",
    "etc/examples/plugin/rackplan.egg-info/PKG-INFO",
    "etc/examples/plugin/rackplan/.mypy_cache/made",
    "tests/.pytest_cache/made",
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git tells which files there are"),
]

#: Runs an installed program with words; returns what it prints.
Run = Callable[..., str]


def run_in(folder: Path, *words: str | Path, **variables: str) -> str:
    """Run a program to its end in a folder; returns what it prints."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    ended = subprocess.run(
        words,
        cwd=folder,
        env={**environment, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def git(folder: Path, *words: str) -> str:
    """Run git as somebody without a configuration."""
    own = ("user.name=A", "user.email=a@example.org", "init.defaultBranch=main")
    options = [word for setting in own for word in ("-c", setting)]
    return run_in(folder, "git", *options, *words, GIT_CONFIG_GLOBAL=os.devnull)


def unpack(archive: Path, into: Path) -> None:
    """Unpack an archive into a folder, which is made."""
    into.mkdir(exist_ok=True)
    subprocess.run(["tar", "-xf", archive, "-C", into], check=True)


def source_distribution(folder: Path, into: Path) -> Path:
    """Build one of the files in a folder; returns the folder that it unpacks to."""
    leave_behind(folder)
    build = "import sys; from setuptools import build_meta as b; b.build_sdist(sys.argv[1])"
    run_in(folder, sys.executable, "-c", build, into)
    (packed,) = into.glob("*.tar.gz")
    unpack(packed, into)
    return into / packed.name.removesuffix(".tar.gz")


def leave_behind(folder: Path) -> None:
    """Make what builds, runs and editors leave in a checkout."""
    for name in LEFT:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def files_in(folder: Path) -> set[str]:
    """Return the paths of all files in a folder, without what setuptools writes for itself."""
    found = (p.relative_to(folder) for p in folder.rglob("*") if not p.is_dir())
    return {str(p) for p in found if p.parts[0] not in ("actionplan.egg-info", ".git")}


@pytest.fixture(scope="module")
def files() -> set[str]:
    """Return the paths of the files of this checkout: those in git, and those about to be."""
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return {name for name in listed.split("\0") if name and (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def bare(files: set[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the files to a folder without git."""
    copy = tmp_path_factory.mktemp("bare")
    for name in files:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def tagged(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the files to a repository of their own, in which a release is tagged."""
    copy = shutil.copytree(bare, tmp_path_factory.mktemp("tagged") / "clone")
    git(copy, "init", "--quiet")
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "--message", "All of it")
    git(copy, "tag", TAG)
    return copy


@pytest.fixture(scope="module")
def unpacked(tagged: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution of the release and unpack it."""
    return source_distribution(tagged, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the unpacked source distribution."""
    folder = tmp_path_factory.mktemp("wheel")
    source = shutil.copytree(unpacked, folder / "source")
    leave_behind(source)
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--quiet")
    run_in(folder, sys.executable, "-m", "pip", "wheel", *offline, "--wheel-dir", ".", source)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into an environment of its own; returns the folder of its programs."""
    folder = tmp_path_factory.mktemp("installed")
    surroundings = folder / "surroundings"
    surroundings.mkdir()
    for packages in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(packages).iterdir():
            if "actionplan" not in entry.name and not entry.name.endswith(".pth"):
                (surroundings / entry.name).symlink_to(entry)
    run_in(folder, sys.executable, "-m", "venv", "--without-pip", "venv")
    (own,) = folder.glob("venv/lib/python*/site-packages")
    (own / "surroundings.pth").write_text(f"{surroundings}\n", encoding="utf-8")
    offline = ("--no-index", "--no-deps", "--quiet")
    python = folder / "venv" / "bin" / "python"
    run_in(folder, sys.executable, "-m", "pip", "--python", python, "install", *offline, wheel)
    return python.parent


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Run:
    """Return a function that runs programs in an empty folder, with an empty home."""
    home, folder = tmp_path / "home", tmp_path / "folder"
    home.mkdir()
    folder.mkdir()
    # One cache of entry points for all: to look for them anew takes long.
    cache = str(installed.parent / "cache")
    own = {"HOME": str(home), "XDG_CACHE_HOME": cache, "OS_ACTIONPLAN__SIMULATOR_SPEED": "1000"}

    def run(program: str, *words: str) -> str:
        return run_in(folder, installed / program, *words, **own)

    return run


# The source distribution


def test_a_source_distribution_holds_the_checkout_and_nothing_else(unpacked, files):
    assert files_in(unpacked) == files | WRITTEN
    assert (unpacked / "demo").stat().st_mode & 0o111


def test_without_git_it_holds_the_same(bare, files, tmp_path):
    copy = shutil.copytree(bare, tmp_path / "copy")
    (tmp_path / "out").mkdir()
    assert files_in(source_distribution(copy, tmp_path / "out")) == files | WRITTEN


# The version


def version_of(folder: Path) -> str:
    """Ask the build for the version of the files in a folder."""
    return run_in(folder, sys.executable, "setup.py", "--quiet", "--version").splitlines()[-1]


def version_of_archive(clone: Path, into: Path) -> str:
    """Return the version of what ``git archive`` packs of a clone."""
    git(clone, "archive", "--output", str(into / "all.tar"), "HEAD")
    unpack(into / "all.tar", into / "all")
    return version_of(into / "all")


def test_the_version_of_a_release_is_its_tag_also_in_what_git_archive_packs(
    tagged, unpacked, wheel, bare, tmp_path
):
    assert version_of(tagged) == version_of_archive(tagged, tmp_path) == TAG
    assert unpacked.name == f"actionplan-{TAG}"
    assert wheel.name == f"actionplan-{TAG}-py3-none-any.whl"
    assert version_of(bare) == "0.1.0.dev0"


@pytest.mark.parametrize("tags", [(), ("--no-tags",)])
def test_after_a_tag_like_a_version_or_without_any_the_version_counts_commits(
    tagged, tmp_path, tags
):
    git(tmp_path, "clone", "--quiet", *tags, str(tagged), "clone")
    clone = tmp_path / "clone"
    if tags:
        assert version_of(clone).startswith("0.1.0.dev1+g")
        assert version_of_archive(clone, tmp_path) == "0.1.0.dev0"
        return
    for tag in ("release-candidate-2", "1.2.3-try-4", "v2", "2026-11-25", "seen.1.2.3"):
        git(clone, "commit", "--quiet", "--allow-empty", "--message", "More")
        git(clone, "tag", tag)
    assert version_of(clone).startswith("9.8.8.dev5+g")
    assert version_of_archive(clone, tmp_path).startswith("9.8.8.dev5+g")
    git(clone, "tag", "v10.0.1")
    assert version_of(clone) == "10.0.1"


def test_an_old_python_is_refused_in_a_sentence():
    old = "import runpy, sys; sys.version_info = (3, 10, 13); sys.version = '3.10.13 (main)'; "
    ended = subprocess.run(
        [sys.executable, "-c", old + "runpy.run_path('setup.py')"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert re.findall(r"Python (\S+)", ended.stderr) == ["3.11", "3.10.13"]


# The wheel


def test_a_wheel_holds_the_packages_and_what_is_installed_beside_them(wheel, files):
    data, about = f"actionplan-{TAG}.data/data/share", f"actionplan-{TAG}.dist-info"
    packages = {name for name in files if PurePosixPath(name).parts[0] in ("planner", "applier")}
    etc = {name.removeprefix("etc/") for name in files if name.startswith("etc/")}
    shared = {f"{data}/actionplan/{name}" for name in etc - {"oslo-config-generator.conf"}}
    own = (
        *("METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt"),
        *("licenses/LICENSE", "licenses/applier/report/static/pico-LICENSE.md"),
    )
    with zipfile.ZipFile(wheel) as archive:
        assert set(archive.namelist()) == {
            *packages,
            *shared,
            f"{data}/man/man1/actionplan.1",
            *(f"{about}/{name}" for name in own),
        }


def test_the_metadata_make_pip_refuse_an_old_python_and_name_the_licence(wheel):
    with zipfile.ZipFile(wheel) as archive:
        about = Parser().parsestr(archive.read(f"actionplan-{TAG}.dist-info/METADATA").decode())
    assert about["Requires-Python"] == ">=3.11"
    assert about["License-Expression"] == "Apache-2.0 AND MIT"
    assert about["Author"] == "ActionPlan developers"
    assert str(about.get_payload()).startswith("ActionPlan\n==========\n")


# What is installed


def test_every_entry_point_loads(run):
    """Those for use inside Watcher are loaded by the tests with Watcher."""
    load = """
import importlib.metadata, applier
inside = {"watcher_planners", "watcher_workflow_engines", "actionplan.watcher_cli"}
own = importlib.metadata.distribution("actionplan").entry_points
for entry in own:
    if entry.group not in inside:
        entry.load()
print(len(own), applier.__file__)
"""
    count, place = run("python", "-c", load).split()
    assert int(count) > 60
    assert not Path(place).is_relative_to(ROOT)


def test_an_example_runs_from_an_empty_folder_also_one_with_programs_of_its_own(run):
    assert run("actionplan", "--version") == f"actionplan {TAG}\n"
    assert "etc/examples/host-maintenance.yaml" in run("actionplan", "example", "copy")
    run("actionplan", "create", "etc/examples/host-maintenance.yaml")
    for plan in ("last", "etc/examples/events/keystone.yaml"):
        assert "SUCCEEDED  took" in run("actionplan", "apply", plan, "--yes")


def test_the_files_beside_the_packages_are_those_of_the_checkout(run, installed):
    for name in ("watcher.conf.sample", "actionplan-applier.service", "solution.yaml"):
        (source,) = (ROOT / "etc").rglob(name)
        assert run("actionplan", "example", "show", name) == source.read_text(encoding="utf-8")
    page = installed.parent / "share" / "man" / "man1" / "actionplan.1"
    assert page.read_bytes() == (ROOT / "doc" / "actionplan.1").read_bytes()


# The example plugin, installed as a third party's


@pytest.fixture
def plugin(installed, tmp_path):
    """Install the package under etc/examples/plugin besides; return the folder of its sources."""
    source = shutil.copytree(ROOT / "etc/examples/plugin", tmp_path / "source")
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--quiet")
    python = installed / "python"
    run_in(tmp_path, sys.executable, "-m", "pip", "--python", python, "install", *offline, source)
    return source


CHOSEN = """
[watcher_planner]
planner = rack_by_rack
[watcher_planners.rack_by_rack]
racks = r2, r1
[watcher_actions.announce]
site = Berlin
[watcher_workflow_engines.taskflow]
max_workers = 4
"""


def test_watcher_conf_chooses_the_planner_and_the_options_of_a_plugin(run, plugin, tmp_path):
    assert " passed" in run("python", "-m", "pytest", "-q", "-W", "error", str(plugin / "tests"))
    assert "rack_by_rack" in run("actionplan", *("planner", "list", "-f", "value"))
    (tmp_path / "watcher.conf").write_text(CHOSEN, encoding="utf-8")
    configured = ("actionplan", "--config-file", str(tmp_path / "watcher.conf"))
    assert "  here: Berlin\n" in run(*configured, "action", "type", "show", "announce")
    # Its document without the name of a planner: the configuration decides.
    text = (plugin / "racks.yaml").read_text(encoding="utf-8")
    document = tmp_path / "racks.yaml"
    document.write_text(text.replace("planner: rack_by_rack\n", ""), encoding="utf-8")
    plan = json.loads(run(*configured, "create", str(document), "--dry-run", "-f", "json"))
    assert (plan["planner"], plan["warnings"]) == ("rack_by_rack", [])
    for _ in range(2):  # the second time it finds the lines there
        run(*configured, "apply", str(document), "--yes")
        lines = (tmp_path / "folder/log-book.txt").read_text(encoding="utf-8").splitlines()
        assert set(lines[:2]) == {"Berlin: compute-3 is new", "Berlin: compute-4 is new"}
        assert set(lines[2:4]) == {"Berlin: compute-1 is new", "Berlin: compute-2 is new"}
        assert lines[4:] == ["Berlin: all racks are new"]
