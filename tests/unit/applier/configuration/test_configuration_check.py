# SPDX-License-Identifier: Apache-2.0
"""Whatever is wrong in a configuration is found at start, with its file, line and section."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import zip_longest
from pathlib import Path

import pytest
from oslo_config import cfg

from applier import configuration
from applier.clouds.simulated import SimulatedCloud
from applier.configuration import check, plugin_options
from applier.errors import ConfigurationError
from planner.making import registry

ROOT = Path(__file__).parents[4]
OPTIONS = [
    (group if isinstance(group, str) else group.name, option)
    for group, options in configuration.list_opts()
    for option in options
]
NUMBERS = [
    (group, option)
    for group, option in OPTIONS
    if isinstance(option.type, cfg.types.Integer | cfg.types.Float)
]


class Read:
    """Reads a configuration from a text; ``warnings`` are those of the last one."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.warnings: list[str] = []

    def __call__(self, text: str) -> cfg.ConfigOpts:
        self.file.write_text(text, encoding="utf-8")
        self.warnings.clear()
        return configuration.load([str(self.file)], warn=self.warnings.append)

    def refused(self, text: str) -> list[str]:
        """Return the mistakes in a text, without the path of the file."""
        with pytest.raises(ConfigurationError) as found:
            self(text)
        return [str(m).replace(f"{self.file}:", "") for m in found.value.mistakes]

    def told(self, text: str) -> list[str]:
        """Return the warnings about a text that is accepted, without the path of the file."""
        self(text)
        return [warning.replace(f"{self.file}:", "") for warning in self.warnings]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    return Read(tmp_path / "watcher.conf")


def misspelt(name: str) -> str:
    """Exchange two letters of a name."""
    i = next(i for i in range(1, len(name)) if name[i - 1] != name[i])
    return name[: i - 1] + name[i] + name[i - 1] + name[i + 1 :]


def in_sections(values: Iterable[tuple[str, str, str]]) -> tuple[str, list[str]]:
    """Return a configuration with a section for each value, and the place of each value."""
    lines, places = [], []
    for section, name, value in values:
        lines += [f"[{section}]", f"{name} = {value}"]
        places.append(f"{len(lines)}: [{section}] {name}: ")
    return "\n".join(lines), places


def unlike(said: list[str], expected: list[str]) -> list[tuple[str | None, str | None]]:
    """Return the mistakes that do not begin as expected, each with what was expected."""
    pairs = zip_longest(said, expected)
    return [(s, e) for s, e in pairs if s is None or e is None or not s.startswith(e)]


def test_a_misspelt_option_is_refused_in_every_section(read: Read) -> None:
    text, places = in_sections((s, misspelt(option.name), "1") for s, option in OPTIONS)
    said = read.refused(text)
    assert not unlike(said, [f"{place}no such option; did you mean " for place in places])
    meant = [mistake.partition("Known")[0] for mistake in said]
    assert not [
        (option.name, text)
        for (_, option), text in zip(OPTIONS, meant, strict=True)
        if f"'{option.name}'" not in text
    ]


def test_a_misspelt_section_is_refused(read: Read) -> None:
    sections = {section for section, _ in OPTIONS}
    split = [section.rpartition(".") for section in sorted(sections)]
    wrong = {f"{group}{dot}{misspelt(name)}" for group, dot, name in split if len(name) > 3}
    text, places = in_sections((section, "a", "1") for section in sorted(wrong - sections))
    assert not unlike(read.refused(text), [f"{p}no such section; did you mean" for p in places])


def test_a_number_that_cannot_be_is_refused(read: Read) -> None:
    wrong = []
    for number in ("nan", "inf", "-1", "9" * 320, "x"):
        text, places = in_sections((s, option.name, number) for s, option in NUMBERS)
        wrong += unlike(read.refused(text), places)
    assert not wrong


def test_an_option_that_refers_to_itself_is_refused(read: Read) -> None:
    text, places = in_sections((s, o.name, f"${s}.{o.name}") for s, o in OPTIONS)
    assert not unlike(read.refused(text), places)


def test_references_to_each_other_and_to_nothing_are_refused(read: Read) -> None:
    text = "[ssh]\nknown_hosts = ${actionplan.simulator}\n[actionplan]\n"
    first, second = read.refused(f"{text}simulator = ${{ssh.known_hosts}}\n")
    assert first.startswith("2: [ssh] known_hosts: it refers")
    assert second.startswith("4: [actionplan] simulator: it refers")
    (mistake,) = read.refused("[actionplan]\nsimulator = $nothing\n")
    assert mistake.startswith("2: [actionplan] simulator: ")
    assert "nothing" in mistake


def test_a_secret_is_not_told(read: Read) -> None:
    (mistake,) = read.refused("[actionplan]\nconnection = mysql://me:hun$ter2@db/plans\n")
    assert mistake.startswith("2: [actionplan] connection: $NAME")
    assert "ter2" not in mistake


@pytest.mark.parametrize(
    ("section", "line"),
    [
        ("watcher_planners.weight", "weights = migrte:3,nop:4"),
        ("watcher_planners.weight", "parallelization = migrte:3"),
        ("watcher_planners.workload_stabilization", "weights = migrte:3"),
        ("watcher_planner", "limits = type:migrte=3, type:nop=2, node:*=1"),
    ],
)
def test_numbers_for_types_that_nobody_has_are_told(read: Read, section: str, line: str) -> None:
    (told,) = read.told(f"[{section}]\n{line}\n")
    assert told.startswith(f"2: [{section}] {line.split()[0]}: no action type 'migrte' ")
    assert "did you mean 'migrate'?" in told


def test_everything_of_watcher_is_left_alone(read: Read) -> None:
    own = {(section, name) for section, o in OPTIONS for name in (o.name, o.dest)}
    text = ""
    for section, names in sorted(check._sections().items()):
        others = [name for name in names if (section, name) not in own]
        text += f"[{section}]\n" + "".join(f"{name} = anything\n" for name in others)
        text += "of_a_plugin = 1\n" if section not in ("DEFAULT", *{s for s, _ in OPTIONS}) else ""
    text += "[watcher_strategies.mine]\nperiod = 3\n[profiler]\nenabled = true\n"
    assert read.told(text) == []


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(read: Read) -> None:
    text = "[watcher_applier]\nworkers =\non_fialure = pause\n[actionplan]\nsimulator_speed = NO\n"
    lines = [mistake.partition(":")[0] for mistake in read.refused(text)]
    assert lines == ["2", "3", "5"]


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("OS_ACTIONPLAN__CONECTION", "'connection'"),
        ("OS_WATCHER_APPLIER__WORKERS", "equal to 1"),
        ("OS_WATCHER_ACTIONS.NOP__RETIRES", "'retries'"),
    ],
)
def test_the_environment_is_checked_too(
    read: Read, monkeypatch: pytest.MonkeyPatch, variable: str, text: str
) -> None:
    monkeypatch.setenv(variable, "-7")
    (mistake,) = read.refused("[watcher_applier]\nworkers = 2\n")
    assert mistake.startswith(f"environment variable {variable}: ")
    assert text in mistake


@pytest.mark.parametrize(
    ("section", "line", "text"),
    [
        ("actionplan", "connection = foo://", "it is not sqlite:////PATH"),
        ("actionplan", "connection = sqlite://", "it is not sqlite:////PATH"),
        ("simulated_nodes", "failures = 0.1, 2", "'2' is neither"),
        ("simulated_nodes", "failures = 2, 3/x", "'2, 3/x' is neither"),
        (
            "events",
            "webhooks = a:http://h/, ops:ftp://me:secret@h/",
            "ops: accepted: NAME:http://...",
        ),
        ("events", "webhooks = ops", "Value should be"),
        ("workers", "broker = http://me:secret@h/", "name the message broker"),
        ("workers", "route = region:a", "'region:a' is no kind of tokens"),
        ("watcher_applier", "workflow_engine = takflow", "no workflow engine 'takflow'"),
        ("watcher_applier", "health_probe = check 'it", "it is no command line"),
        ("watcher_applier", "health_probe = https://:80/", "an address begins"),
        ("watcher_planner", "planner = wieght", "no planner 'wieght'"),
        ("watcher_planners.actionplan", "planner = x", "no planner 'x'; Known: deployment,"),
        ("actionplan", "simulator = /tmp/a\0b", "the character U+0000"),
    ],
)
def test_a_text_that_cannot_be_used_is_refused(
    read: Read, section: str, line: str, text: str
) -> None:
    (mistake,) = read.refused(f"[{section}]\n{line}\n")
    assert mistake.startswith(f"2: [{section}] {line.split()[0]}: {text}")
    assert "secret" not in mistake


def test_plugins_of_watcher_from_a_third_party_are_told(read: Read) -> None:
    others = (
        "[watcher_planners.parallel]\nweights = nop: 0\n[watcher_workflow_engines.own]\na = 1\n"
    )
    (told,) = read.told(f"{others}[watcher_applier]\nworkflow_engine = own\n")
    known = "no workflow engine 'own'; Known: actionplan, taskflow; taskflow runs plans"
    assert told == f"6: [watcher_applier] workflow_engine: {known}"


def test_an_engine_of_watcher_in_its_own_file_is_told(read: Read) -> None:
    (told,) = read.told("[watcher_applier]\nworkflow_engine = theirs\n[database]\nx = 1\n")
    assert "'theirs'" in told
    assert told.endswith("taskflow runs plans")
    conf = read("[watcher_applier]\nworkflow_engine = theirs\n[database]\nx = 1\n")
    assert plugin_options.engine_name(conf) == "taskflow"


def test_values_may_be_in_several_lines(read: Read) -> None:
    conf = read(
        "[watcher_applier]\nworkers =\n  3\n"
        "windows = daily 01:00-02:00 UTC\n  sat 03:00-04:00 UTC\n"
        "[watcher_planner]\nlimits =\n  node:*=2,\n\ttype:nop=4\n"
        "[ssh]\nkey_files =\n  /a,\n  /b\n"
    )
    assert (conf.watcher_applier.workers, conf.ssh.key_files) == (3, ["/a", "/b"])
    assert conf.watcher_applier.windows == ("daily 01:00-02:00 UTC", "sat 03:00-04:00 UTC")
    assert conf.watcher_planner.limits == {"node:*": 2, "type:nop": 4}


def test_an_option_that_continues_another_by_accident_is_refused(read: Read) -> None:
    text = "[watcher_applier]\nworkers = 2\n  grace_s = 10\n[ssh]\nkey_files = /a\n /b\n"
    places = ["2: [watcher_applier] workers: ", "5: [ssh] key_files: ", "7: [ssh] known_hosts: "]
    assert not unlike(read.refused(f"{text}known_hosts = /k\n  seed = 1\n"), places)


class Cloud(SimulatedCloud):
    """A cloud of a third party."""

    OPTIONS = (
        cfg.StrOpt("url", default="here", help="Where it is."),
        cfg.StrOpt("api-key", required=True, help="Who asks."),
        cfg.IntOpt("port", required=True, default=1, help="At which port."),
        cfg.MultiStrOpt("region", deprecated_name="zone", help="Where to look."),
    )


@pytest.fixture
def toy(offer: Callable[..., None]) -> None:
    """Register :class:`Cloud` as the entry point ``toy``."""
    offer(registry.CLOUDS, "toy", f"{__name__}:Cloud")


@pytest.mark.usefixtures("toy")
def test_an_option_may_have_an_earlier_name_and_several_values(read: Read) -> None:
    assert read.told("[toy]\napi_key = me\nregion = a\nregion = b\n") == []
    assert read.told("[toy]\napi_key = me\nzone = a\n") == []


@pytest.mark.usefixtures("toy")
def test_an_option_with_a_hyphen_has_none_in_files(read: Read) -> None:
    (mistake,) = read.refused("[toy]\napi_key = me\napi-key = me\n")
    assert mistake.startswith("3: [toy] api-key: ")
    assert "'api_key'?" in mistake


def test_the_environment_of_other_programs_is_left_alone(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AUTH_URL", "EVENT__LAG", "SSHD__PORT", "DATABASE__CONNECTION", "_", "DEFAULT__X"):
        monkeypatch.setenv(f"OS_{name}", "1")
    assert read.told("") == []


def test_a_check_imports_only_plugins_whose_options_are_set(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []
    load = registry.load
    monkeypatch.setattr(registry, "load", lambda *given: loaded.append(given) or load(*given))
    read("[watcher_actions.nop]\nretries = 2\n[watcher_planners.weight]\nordering = slots\n")
    assert loaded == [(registry.PLANNERS, "weight")]


def test_the_sample_is_accepted_with_its_examples(read: Read) -> None:
    sample = (ROOT / "etc" / "watcher.conf.sample").read_text(encoding="utf-8")
    # An option that is commented out has no blank after "#"; an explanation has one.
    lines = [re.sub("^#(?! )", "", line) for line in sample.splitlines()]
    assert read.told("\n".join(line for line in lines if "<None>" not in line)) == []
