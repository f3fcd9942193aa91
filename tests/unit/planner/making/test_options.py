# SPDX-License-Identifier: Apache-2.0
"""Where values come from, which of them wins, and what is said of wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from oslo_config import cfg

from planner import make_plan
from planner.errors import InvalidInput, Mistake
from planner.making import options as planning_options
from planner.making.options import LIMITS
from planner.planners.weight import PARALLELIZATION, WEIGHTS, WeightPlanner

Configure = Callable[..., cfg.ConfigOpts]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Return a function that reads the texts of files, in order, as configuration."""

    def read(*texts: str) -> cfg.ConfigOpts:
        files = [tmp_path / f"watcher-{n}.conf" for n in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, encoding="utf-8")
        conf = cfg.ConfigOpts()
        conf(args=[], default_config_files=[str(f) for f in files], default_config_dirs=[])
        return planning_options.configuration(conf)

    return read


def resolved(
    conf: cfg.ConfigOpts | None = None,
    document: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Resolve the options of the planner weight; raises InvalidInput."""
    conf = planning_options.configuration(conf)
    wrong: list[Mistake] = []
    layers = planning_options.layers(WeightPlanner, conf, {"options": document or {}}, options)
    found = planning_options.resolve(WeightPlanner, layers, wrong)
    wrong += planning_options.unknown_keys(WeightPlanner, conf)
    if wrong:
        raise InvalidInput(wrong)
    return found


def test_without_a_configuration_the_defaults_of_watcher_17_hold() -> None:
    found = resolved()
    assert found.weights == WEIGHTS
    assert found.parallelization == PARALLELIZATION
    assert found.ordering == "chunks"


def test_the_document_wins_over_the_file_and_arguments_win_over_both(configure: Configure) -> None:
    conf = configure("[watcher_planners.weight]\nweights = nop:1,sleep:1,migrate:1\n")
    found = resolved(conf, {"weights": {"sleep": 2, "migrate": 2}}, weights={"migrate": 3})
    assert [found.weights[name] for name in ("nop", "sleep", "migrate")] == [1, 2, 3]


def test_what_is_named_is_merged_over_the_defaults(configure: Configure) -> None:
    conf = configure("[watcher_planners.weight]\nparallelization = migrate:5\n")
    assert resolved(conf).parallelization == {**PARALLELIZATION, "migrate": 5}


def test_the_section_that_watcher_leaves_alone_wins_over_the_one_that_it_reads(
    configure: Configure,
) -> None:
    conf = configure(
        "[watcher_planners.weight]\nparallelization = migrate:5,resize:7\nordering = slots\n"
        "[watcher_planners.actionplan]\nparallelization = migrate:3\nweights = nop:1\n"
    )
    found = resolved(conf)
    assert found.parallelization == {**PARALLELIZATION, "migrate": 3, "resize": 7}
    assert (found.ordering, found.weights["nop"]) == ("slots", 1)


def test_the_section_for_watcher_has_options_of_the_planner_that_it_names(
    configure: Configure,
) -> None:
    text = "[watcher_planners.actionplan]\nplanner = workload_stabilization\nweights = nop:1\n"
    assert resolved(configure(text)).weights == WEIGHTS


def test_mistakes_in_the_section_for_watcher_are_named_with_its_lines(configure: Configure) -> None:
    conf = configure("[watcher_planners.actionplan]\nweigths = nop:1\nparallelization = nop:x\n")
    with pytest.raises(InvalidInput) as refused:
        resolved(conf)
    file = conf.config_file[0]
    assert [mistake.place for mistake in refused.value.mistakes] == [
        f"{file}:3: [watcher_planners.actionplan] parallelization",
        f"{file}:2: [watcher_planners.actionplan] weigths",
    ]


def test_the_defaults_stay_as_they_are() -> None:
    resolved(weights={"nop": 1}).weights["sleep"] = 5
    assert resolved().weights == WEIGHTS


def test_weights_from_a_file_are_numbers(configure: Configure) -> None:
    text = "[watcher_planners.weight]\nweights = nop:100,sleep:70,migrate:60,resize:9\n"
    document = {"actions": [{"action_type": t} for t in ("resize", "migrate", "sleep", "nop")]}
    plan = make_plan(document, conf=configure(text), check_types=False)
    assert [a.action_type for a in plan.actions] == ["nop", "sleep", "migrate", "resize"]


def test_text_of_a_command_line_is_read_like_the_text_of_a_file() -> None:
    found = resolved(weights="nop: 2.5, sleep:-1", ordering="slots")
    assert (found.weights["nop"], found.weights["sleep"], found.ordering) == (2.5, -1, "slots")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"weights": {"nop": "inf"}}, "option weights: nop: 'inf' is not a finite number"),
        ({"weights": {"nop": float("nan")}}, "nop: nan is not a finite number"),
        ({"weights": {"nop": True}}, "nop: True is not a number"),
        ({"weights": {"nop": None}}, "nop: None is not a number"),
        ({"weights": {"a": "x", "b": "y"}}, "a: 'x' is not a number; b: 'y' is not a number"),
        ({"weights": "nop"}, "option weights: Value should be NAME:VALUE pairs"),
        ({"weights": [1]}, r"option weights: \[1\] is neither a mapping nor"),
        ({"parallelization": {"nop": 0}}, "nop: 0 is not a whole number of 1 or more"),
        ({"parallelization": {"nop": "-1"}}, "nop: '-1' is not a whole number of 1 or more"),
        ({"parallelization": {"nop": 1.5}}, "nop: 1.5 is not a whole number of 1 or more"),
        ({"ordering": "sets"}, r"option ordering: .*\[chunks, slots\].*'sets'"),
        ({"weigths": {}}, "option weigths: planner 'weight' has no option 'weigths'; did you mean"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_accepted(
    options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        resolved(**options)


def test_an_option_with_a_hyphen_has_an_underscore_everywhere(configure: Configure) -> None:
    class Dial(WeightPlanner):
        OPTIONS = (cfg.IntOpt("most-calls", default=1),)

    def found(conf: cfg.ConfigOpts | None = None, **options: int) -> tuple[Any, list[Mistake]]:
        wrong: list[Mistake] = []
        conf = planning_options.configuration(conf)
        layers = planning_options.layers(Dial, conf, {"options": options}, {})
        values = planning_options.resolve(Dial, layers, wrong)
        return values, [*wrong, *planning_options.unknown_keys(Dial, conf)]

    conf = configure("[watcher_planners.weight]\nmost_calls = 2\n")
    assert found() == (SimpleNamespace(most_calls=1), [])
    assert found(conf) == (SimpleNamespace(most_calls=2), [])
    assert found(conf, most_calls=3) == (SimpleNamespace(most_calls=3), [])


def test_a_whole_number_may_be_written_as_text_or_fraction() -> None:
    found = resolved(parallelization={"nop": "2", "sleep": 3.0})
    assert (found.parallelization["nop"], found.parallelization["sleep"]) == (2, 3)


def test_a_wrong_value_in_a_file_is_named_with_file_line_and_section(configure: Configure) -> None:
    conf = configure("# weights\n\n[watcher_planners.weight]\nweights = nop:1,\n  sleep:heavy\n")
    with pytest.raises(InvalidInput) as refused:
        resolved(conf)
    (mistake,) = refused.value.mistakes
    assert mistake.place == f"{conf.config_file[0]}:4: [watcher_planners.weight] weights"
    assert mistake.text == "sleep: 'heavy' is not a number"


def test_an_unknown_key_is_named_with_file_line_and_the_nearest(configure: Configure) -> None:
    conf = configure(
        "[watcher_planner]\nplaner = weight\n[DEFAULT]\nweights = 5\n[other]\nx = 1\n",
        "[watcher_planners.weight]\nweigths = nop:1\n",
    )
    with pytest.raises(InvalidInput) as refused:
        resolved(conf)
    first, second = conf.config_file
    planer, weigths = refused.value.mistakes
    assert planer.place == f"{first}:2: [watcher_planner] planer"
    assert planer.text.endswith("'planner'? Known: limits, planner")
    assert weigths.place == f"{second}:2: [watcher_planners.weight] weigths"
    assert weigths.text.endswith("'weights'? Known: ordering, parallelization, weights")


def test_files_of_a_folder_are_read_as_well(tmp_path: Path) -> None:
    file = tmp_path / "10-planner.conf"
    file.write_text("[watcher_planners.weight]\nwiehgts = nop:1\n", encoding="utf-8")
    conf = cfg.ConfigOpts()
    conf(args=["--config-dir", str(tmp_path)], default_config_files=[])
    with pytest.raises(InvalidInput, match=r"10-planner\.conf:2: \[watcher_planners\.weight\]"):
        resolved(conf)


def test_the_last_file_that_has_a_key_is_the_one_to_mend(configure: Configure) -> None:
    wrong = "[watcher_planners.weight]\nparallelization = nop:0\n"
    conf = configure(wrong.replace("nop", "sleep"), f"\n{wrong}")
    with pytest.raises(InvalidInput, match=r"watcher-1\.conf:3: .*: nop: '0' is not"):
        resolved(conf)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node:*=2, type:migrate=4", {"node:*": 2, "type:migrate": 4}),
        ("node:*=2\ntype:migrate=4\n", {"node:*": 2, "type:migrate": 4}),
        ("file:/a=b=3", {"file:/a=b": 3}),
        ("", {}),
        ({"node:c1": 1}, {"node:c1": 1}),
    ],
)
def test_limits_are_tokens_with_numbers(text: Any, expected: dict[str, int]) -> None:
    assert LIMITS(text) == expected


@pytest.mark.parametrize(
    "text", ["node:*=0", "node:*=-1", "node:*=many", "node:*", "=2", "node=2", "node:=2", ":c1=2"]
)
def test_a_limit_that_is_none_is_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(ValueError, match=r"KIND:\*=N with N of 1 or more"):
        LIMITS(text)


def test_limits_of_a_file_hold_for_every_plan(configure: Configure) -> None:
    conf = configure("[watcher_planner]\nlimits = node:*=2, type:nop=1\n")
    assert make_plan({"actions": []}, conf=conf).limits == {"node:*": 2, "type:nop": 1}


def test_wrong_limits_of_a_file_are_named_with_their_place(configure: Configure) -> None:
    conf = configure("[watcher_planner]\nlimits = node:*=0\n")
    with pytest.raises(InvalidInput, match=r"conf:2: \[watcher_planner\] limits: node:\*=0 is"):
        make_plan({"actions": []}, conf=conf)


def test_the_text_of_limits_reads_back() -> None:
    limits = {"node:*": 2, "type:migrate": 4}
    (written,) = LIMITS.format_defaults(limits)
    assert LIMITS(written) == limits


def test_without_a_configuration_nothing_from_outside_has_a_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OS_WATCHER_PLANNER__PLANNER", "workload_stabilization")
    conf = planning_options.configuration(None)
    assert conf[planning_options.GROUP].planner == "weight"
