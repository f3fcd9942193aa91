# SPDX-License-Identifier: Apache-2.0
"""What the pages say is so: outputs, drawings, tables, links."""

from __future__ import annotations

import argparse
import fcntl
import os
import pkgutil
import re
import subprocess
import sys
import textwrap
from configparser import ConfigParser
from html import unescape
from itertools import pairwise
from pathlib import Path

import docutils.core
import docutils.utils
import pytest
from console_blocks import Command, Reader, agrees, differences, steps, write

from applier import configuration
from applier.cli import exit_codes
from applier.cli.help import GROUPS
from applier.cli.program import Program
from planner.making import registry, saved
from planner.plan import effects
from planner.plan.states import ACTION_TRANSITIONS, PLAN_TRANSITIONS
from planner.planners import solution_schema
from planner.planners.events import document as events_schema

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(p for p in (ROOT / "doc").rglob("*.rst") if "_build" not in p.parts)
DECISIONS = [p for p in PAGES if p.parent.name == "decisions" and p.stem != "index"]
#: Simulated seconds in a second: pages were written at 1.
SPEED = 50


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def has_commands(page: Path) -> bool:
    found = steps(page.read_text(encoding="utf-8").splitlines())
    return any(isinstance(step, Command) and step.is_run for step in found)


# Outputs


#: Their commands start services and programs of shells for many seconds.
LONG = ("ask-over-http", "drain-a-host", "run-the-service", "when-it-goes-wrong-at-night")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.long if page.stem in LONG else (), id=name_of(page))
        for page in filter(has_commands, [ROOT / "README.rst", *PAGES])
    ],
)
def test_every_command_prints_what_the_page_says(page, tmp_path):
    reader = Reader(tmp_path, SPEED)
    try:
        wrong = differences(page, reader)
    finally:
        reader.leave()
    assert not wrong, "\n".join([*wrong, "write anew: python tests/functional/console_blocks.py"])


def test_the_commands_of_a_block_have_the_outputs_below_them():
    page = [".. code-block:: console", "", "   $ a \\", "     -b", "   one", "", "   $ c", ""]
    assert [(s.text, s.output) for s in steps(page)] == [("a   -b", ("one",)), ("c", ())]


def test_dots_stand_for_lines_and_nothing_else():
    assert agrees(["...", "two"], ["one", "two"])
    assert agrees(["one", "...", "three"], ["one", "two", "three"])
    assert not agrees(["...", "two"], ["one", "two", "three"])
    assert not agrees(["one", "..."], ["two", "one"])


def test_a_page_that_says_something_else_is_found_and_can_be_mended(tmp_path):
    page, reader = tmp_path / "page.rst", Reader(tmp_path / "reader", SPEED)
    page.write_text(".. code-block:: console\n\n   $ actionplan list\n   WRONG\n", "utf-8")
    (found,) = differences(page, reader)
    assert "$ actionplan list" in found
    assert "WRONG" in found
    assert write(page, reader) == 1
    assert differences(page, reader) == []


# Python


def test_the_python_of_pages_runs(tmp_path):
    for name in ("watcher_configuration", "write_a_planner", "write_an_action"):
        page = (ROOT / f"doc/how-to/{name.replace('_', '-')}.rst").read_text(encoding="utf-8")
        blocks = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", page)
        text = textwrap.dedent("".join(blocks))
        (tmp_path / f"test_{name}.py").write_text(text, encoding="utf-8")
    # Those that are no tests run when they are imported.
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "etc/examples/plugin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


# Pages as they are built


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Build the pages once; the other processes of a test run wait, and read the same.

    ./check has built them already, and says where they are.
    """
    if built_before := os.environ.get("ACTIONPLAN_PAGES"):
        return Path(built_before)
    folder = tmp_path_factory.getbasetemp()
    folder = (folder if worker_id == "master" else folder.parent) / "html"
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            build(folder)
    return folder


def build(folder: Path) -> None:
    """Build the pages into a folder, which is there when all of them are."""
    new = folder.with_suffix(".new")
    words = ("-W", "--keep-going", "-q", "-E", "-j", "auto", "-b", "html", ROOT / "doc", new)
    ended = subprocess.run(
        [sys.executable, "-m", "sphinx", *words], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    new.rename(folder)


def arrows(built: Path, page: str, drawing: int = 0) -> set[tuple[str, str]]:
    """Read the arrows of a drawing out of a page."""
    html = (built / page).read_text(encoding="utf-8")
    svg = re.findall(r"<svg class=\"drawing\".*?</svg>", html, re.DOTALL)[drawing]
    found = re.findall(r'data-from="(.*?)" data-to="(.*?)"', svg)
    return {(unescape(a), unescape(b)) for a, b in found}


def texts(built: Path, page: str) -> list[str]:
    """Return what stands as code on a page."""
    html = (built / page).read_text(encoding="utf-8")
    found = re.findall(r"<code.*?>(.*?)</code>", html, re.DOTALL)
    return [unescape(re.sub(r"<.*?>", "", text)) for text in found]


def chain(*stages: str) -> set[tuple[str, str]]:
    """Return an arrow from each name of a stage to each of the next; a stage is a line of names."""
    return {(a, b) for one, two in pairwise(stages) for a in one.split() for b in two.split()}


def test_drawings_have_the_arrows_that_the_text_beside_them_explains(built):
    """What planners make of a document stands in tests/cases."""
    resizes = "resize1 resize2"
    assert arrows(built, "planners/weight.html") == chain(
        "I", "sleep1 sleep2", "migration1 migration2 migration3", resizes, "resize3", "E"
    )
    with_joins = arrows(built, "planners/weight.html", 1)
    assert {b for a, b in with_joins if a == "sleep1"} == {"join-1"}
    assert arrows(built, "planners/needs.html") == {
        *chain("disable-1", "move-web move-db", "grow-db", "off-1"),
        *chain("move-web", "off-1"),
    }


def test_the_pictures_of_states_have_an_arrow_for_each_row(built):
    for place, rows in enumerate((PLAN_TRANSITIONS, ACTION_TRANSITIONS)):
        drawn = arrows(built, "reference/states.html", place)
        assert drawn == {(str(row.old), str(row.new)) for row in rows}


def test_every_row_of_the_tables_of_states_and_effects_is_on_its_page(built):
    states = (built / "reference/states.html").read_text(encoding="utf-8")
    assert all(row.why in states for row in (*PLAN_TRANSITIONS, *ACTION_TRANSITIONS))
    needs = (built / "planners/needs.html").read_text(encoding="utf-8")
    assert all(pair.why.format(resource="it") in needs for pair in effects.PAIRS)


def test_every_field_of_the_documents_is_on_its_page(built):
    found = texts(built, "reference/documents.html")
    for schema in (
        solution_schema.SCHEMA,
        solution_schema.ACTION,
        events_schema.SCHEMA,
        events_schema.CONNECTION,
        events_schema.EVENT,
        saved.SCHEMA,
    ):
        assert set(schema["properties"]) <= set(found)


def test_every_option_verb_planner_and_action_type_is_on_its_page(built):
    options = texts(built, "reference/configuration.html")
    ours = [g for g, _ in configuration.list_opts() if "rackplan" not in str(g)]
    assert len(ours) >= 6
    assert {"connection", "max_workers", "ordering", "limits", "on_failure"} <= set(options)
    lines = (built / "reference/command-line.html").read_text(encoding="utf-8")
    assert all(f"actionplan {name}" in lines for names in GROUPS.values() for name in names)
    for page, namespace in (("planners", registry.PLANNERS), ("action-types", registry.ACTIONS)):
        html = (built / f"reference/{page}.html").read_text(encoding="utf-8")
        for name in registry.names(namespace):
            module = registry.load(namespace, name).__module__.partition(".")[0]
            assert module not in ("planner", "applier") or f"<h2>{name}<" in html


def test_every_argument_of_every_verb_is_in_its_section(built):
    """The parsers are asked, not what the page is made from."""
    html = (built / "reference/command-line.html").read_text(encoding="utf-8")
    program = Program()
    rows = set(section(html, "command-line"))
    for action in program.parser._actions:
        assert rows.intersection(action.option_strings), action.option_strings
    for name, entry in program.command_manager:
        if any(name in names for names in GROUPS.values()):
            parser = entry.load()(program, None).get_parser(f"actionplan {name}")
            told = {*section(html, name.replace(" ", "-")), "-h", "--help"}
            told |= rows if "formatter" in parser.format_help() else set()
            explained = [a for a in parser._actions if a.help != argparse.SUPPRESS]
            wanted = {text for action in explained for text in action.option_strings}
            wanted |= {a.metavar or a.dest for a in parser._actions if not a.option_strings}
            assert wanted <= told, f"{name}: {sorted(wanted - told)}"


def section(html: str, name: str) -> list[str]:
    """Return the words that stand as code in a section, without those of sections below it."""
    (text,) = re.findall(rf'<section id="{name}">(.*?)(?=<section|</section)', html, re.DOTALL)
    found = re.findall(r"<code.*?>(.*?)</code>", text, re.DOTALL)
    return [word for code in found for word in unescape(re.sub(r"<.*?>", "", code)).split()]


def test_every_link_to_the_code_leads_somewhere(built):
    pages = [(built / f"architecture/{p}.html").read_text("utf-8") for p in ("planner", "applier")]
    known = {name for page in pages for name in re.findall(r'id="(?:module-)?([\w.]+)"', page)}
    role = re.compile(r":(?:mod|class|func|meth|data):`(?:[^`<]*<)?~?([\w.]+)>?`")
    wanted = {name for page in PAGES for name in role.findall(page.read_text("utf-8"))}
    assert len(wanted) > 20
    assert wanted <= known, wanted - known


# What is written by hand, beside what it is about


def test_exit_codes_are_those_of_the_verbs():
    page = (ROOT / "doc/reference/exit-codes.rst").read_text(encoding="utf-8")
    told = dict(re.findall(r"\* - (\d)\n     - (\w+)", page))
    known = {exit_codes.REFUSED: "refused", exit_codes.OUT_OF_DATE: "out", 2: "usage", 0: "done"}
    assert {int(code): word for code, word in told.items() if int(code) in known} == known
    assert (
        set(map(int, told)) == {0, 1, 2, 3, 4, 5} == {*known, exit_codes.FAILED, exit_codes.PAUSED}
    )


def test_decisions_are_a_page_each_with_status_and_date_that_the_index_shows(built):
    index = (built / "decisions/index.html").read_text(encoding="utf-8")
    numbers = {p.stem[:4] for p in DECISIONS}
    for page in DECISIONS:
        lines = page.read_text(encoding="utf-8").splitlines()
        heads = [a for a, b in pairwise(lines) if set(b) == {"-"}]
        assert heads == ["Context", "Decision", "Consequences"], page
        assert lines[0].startswith(page.stem[:4]), page
        assert len(lines) <= 60, page
        head = re.fullmatch(r"\n:Status: (.+)\n:Date: (.+)", "\n".join(lines[2:5]))
        assert head, page
        status, date = head.groups()
        superseded = re.fullmatch(r"superseded by (\d{4})", status)
        assert status == "accepted" or superseded[1] in numbers - {page.stem[:4]}, page
        assert re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])-([0-2]\d|3[01])", date), page
        row = next(r for r in index.split("<tr")[1:] if f'href="{page.stem}.html"' in r)
        assert f"<p>{status}</p>" in row, page
        assert f"<p>{date}</p>" in row, page


def test_the_change_log_is_shown_and_begins_with_the_next_release(built):
    log = (ROOT / "CHANGELOG.rst").read_text(encoding="utf-8")
    heads = [a for a, b in pairwise(log.splitlines()) if b and set(b) <= {"-"}]
    assert re.fullmatch(r"\d+\.\d+\.\d+ \((not yet released|20\d\d-\d\d-\d\d)\)", heads[0])
    html = (built / "changelog.html").read_text(encoding="utf-8")
    assert all(f"<h2>{head}" in html for head in heads)


def test_our_names_for_those_of_watcher_exist():
    page = (ROOT / "doc/how-to/coming-from-watcher.rst").read_text(encoding="utf-8")
    names = set(re.findall(r"``((?:planner|applier)\.[\w.]+)", page))
    assert len(names) >= 9
    for name in names:
        pkgutil.resolve_name(name)


README = (ROOT / "README.rst").read_text(encoding="utf-8")


def readme_blocks(language: str) -> list[list[str]]:
    blocks = re.findall(rf"\.\. code-block:: {language}\n\n((?:    .*\n|\n)+)", README)
    return [[line[4:] for line in block.strip("\n").splitlines()] for block in blocks]


def test_the_readme_is_plain_restructuredtext():
    """A forge and a package index know nothing of Sphinx."""
    settings = {"report_level": 1, "halt_level": 2, "_disable_config": True}
    docutils.core.publish_string(README, writer="html5", settings_overrides=settings)


def test_the_picture_of_the_readme_is_what_the_product_draws(actionplan):
    (picture,) = re.findall(r"image:: (\S+)", README)
    example = str(ROOT / "etc/examples" / f"{Path(picture).stem}.yaml")
    assert actionplan("graph", example, "-f", "svg", "--out", "drawn.svg").code == 0
    drawn = (actionplan.folder / "drawn.svg").read_bytes()
    assert drawn == (ROOT / picture).read_bytes(), f"write {picture} anew"


def test_the_documents_of_the_readme_are_parts_of_the_examples():
    for block, name in zip(readme_blocks("yaml"), ("host-maintenance", "rollout"), strict=True):
        example = (ROOT / f"etc/examples/{name}.yaml").read_text(encoding="utf-8")
        lines = {line.strip() for line in example.splitlines()}
        assert [line for line in block if line.strip() not in lines] == []


def test_the_planner_of_the_readme_plans(actionplan):
    (block,) = readme_blocks("python")
    (actionplan.folder / "planners.py").write_text("\n".join(block), encoding="utf-8")
    (actionplan.folder / "own.conf").write_text("[actionplan]\nplugins = ./planners.py\n")
    example = str(ROOT / "etc/examples/host-maintenance.yaml")
    named = ("--planner", "one_by_one", "--config-file", "own.conf")
    shown = actionplan.program("create", example, *named).out
    assert "11 actions in 11 waves" in shown


def test_every_option_of_the_readme_exists_and_its_value_is_accepted(tmp_path):
    file = tmp_path / "watcher.conf"
    (block,) = readme_blocks("ini")
    file.write_text("\n".join(block), encoding="utf-8")
    told = ConfigParser()
    told.read(file)
    conf = configuration.load([str(file)])
    configuration.register_all(conf)
    assert len(told.sections()) >= 3
    for section in told.sections():
        for option in told[section]:
            assert conf[section][option] not in (None, "")
