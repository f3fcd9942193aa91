# SPDX-License-Identifier: Apache-2.0
"""``example list``, ``show`` and ``copy`` in a checkout; test_packaging.py tries a wheel."""

from __future__ import annotations

import configparser
import json
import os
from pathlib import Path

import pytest
from command_line import ROOT

from applier.cli import examples
from applier.errors import ConfigurationError

FIRST = "etc/examples/host-maintenance.yaml"


def test_each_document_is_listed_with_what_it_is(actionplan):
    ended = actionplan("example", "list", "-f", "json")
    about = {row["name"]: row["what it is"] for row in json.loads(ended.out)}
    assert about[FIRST] == "Rack r1 gets new power supplies tonight"
    assert {"etc/watcher.conf.sample", "etc/actionplan-applier.service"} <= set(about)
    assert all((ROOT / name).is_file() for name in about)
    assert all(text for name, text in about.items() if name.endswith((".yaml", ".service", ".sql")))


def test_what_a_run_left_in_the_checkout_is_not_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(examples, "__file__", str(tmp_path / "applier" / "cli" / "examples.py"))
    left = (
        "examples/events/site/made",
        "examples/plugin/build/lib/rackplan/__init__.py",
        "examples/plugin/rackplan.egg-info/PKG-INFO",
        "examples/plugin/rackplan/__pycache__/announce.pyc",
        "examples/.#a.yaml",
        "examples/a.yaml~",
        "other",
    )
    for name in ("actionplan-applier.service", "examples/a.yaml", *left):
        (tmp_path / "etc" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "etc" / name).touch()
    assert list(examples.files()) == ["etc/actionplan-applier.service", "etc/examples/a.yaml"]


def test_what_is_listed_is_what_is_installed():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    patterns = {
        (folder, pattern)
        for folder, lines in parser["options.data_files"].items()
        for pattern in lines.split()
        if folder.startswith("share/actionplan")
    }
    assert patterns == {
        ((Path("share/actionplan") / pattern).parent.as_posix(), f"etc/{pattern}")
        for pattern in examples.OFFERED
    }


def test_packages_without_their_files_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(examples, "__file__", str(tmp_path / "applier" / "cli" / "examples.py"))
    with pytest.raises(ConfigurationError, match="the examples were not installed"):
        examples.files()


def test_one_is_shown_by_its_name_or_its_path(actionplan):
    for name in ("host-maintenance.yaml", "examples/host-maintenance.yaml", FIRST):
        assert actionplan.good("example", "show", name) == (ROOT / FIRST).read_text("utf-8")
    for words, sentence in (
        (("show", "solution.yam"), "solution.yam: no such example; did you mean 'solution.yaml'?"),
        (("copy", ""), "'': no such example; Known: README.rst, "),
        (("show", "conf"), "conf: one file is shown at a time; choose from etc/examples/events/"),
    ):
        ended = actionplan("example", *words)
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.startswith(f"Refused: {sentence}")


def test_all_are_copied_to_the_paths_that_the_documentation_names(actionplan):
    ended = actionplan("example", "copy")
    assert ended.code == 0
    assert ended.err == f"Next: actionplan create {FIRST}\n"
    assert ended.out.splitlines() == list(examples.files())
    for name, path in examples.files().items():
        assert (actionplan.folder / name).read_bytes() == path.read_bytes()
    assert os.access(actionplan.folder / "etc/examples/events/bring", os.X_OK)


def test_a_folder_of_them_is_copied_below_the_folder_that_is_named(actionplan):
    ended = actionplan("example", "copy", "events", "to try")
    copied = [n for n in examples.files() if n.startswith("etc/examples/events/")]
    assert ended.out.splitlines() == [f"to try/{name}" for name in copied]
    assert ended.err.startswith("Next: cd 'to try' && actionplan create ")


def test_no_file_is_overwritten_and_then_none_is_copied(actionplan):
    own = actionplan.folder / "etc/examples/rolling-update.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("mine", encoding="utf-8")
    ended = actionplan("example", "copy")
    told = "Refused: nothing was copied, these exist: etc/examples/rolling-update.yaml\n"
    assert (ended.code, ended.out, ended.err) == (1, "", told)
    assert own.read_text(encoding="utf-8") == "mine"
    assert list(own.parent.iterdir()) == [own]
