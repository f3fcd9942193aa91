# SPDX-License-Identifier: Apache-2.0
"""Templates as people keep them: in files, in YAML with short forms; mistakes have a line."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from planner import documents, make_plan
from planner.errors import InvalidInput

TEMPLATE = """\
AWSTemplateFormatVersion: 2010-09-09
Parameters:
  Image: {Type: String, Default: one}
Resources:
  Group:
    Type: OS::Heat::InstanceGroup
    UpdatePolicy:
      RollingUpdate:
        MaxBatchSize: 2
    Properties:
      Size: 3
      LaunchConfigurationName: !Ref Config
  Config:
    Type: AWS::AutoScaling::LaunchConfiguration
    Properties:
      ImageId: !Ref Image
      UserData: !Base64
        "Fn::Join": ["", [a, b]]
      KeyName: !GetAtt Group.Key
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two templates in a folder of their own, and a document beside that."""
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "old.yaml").write_text(TEMPLATE)
    (tmp_path / "stacks" / "new.yaml").write_text(TEMPLATE.replace("one", "two"))
    (tmp_path / "roll.yaml").write_text(
        "kind: rolling_update\nold_file: stacks/old.yaml\nnew_file: stacks/new.yaml\n"
    )
    return tmp_path


def refusal(path: Path) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        make_plan(path)
    return str(refused.value).splitlines()


def test_templates_are_read_from_files_beside_the_document(folder: Path) -> None:
    made = make_plan(folder / "roll.yaml")
    assert made.efficacy_indicators[0]["value"]["cause"] == "ImageId of Config changed"
    (created,) = {a.description for a in made.actions if a.label.endswith("batch-1/create-1")}
    assert created is not None
    assert created.endswith("-1 (two)")


def test_a_template_may_be_json(folder: Path) -> None:
    import json

    value = documents.read(folder / "stacks" / "new.yaml").value
    (folder / "new.json").write_text(json.dumps(value, indent=1))
    (folder / "roll.yaml").write_text(
        "kind: rolling_update\nold_file: stacks/old.yaml\nnew_file: new.json\n"
    )
    assert make_plan(folder / "roll.yaml").actions


def test_short_forms_are_the_long_ones(folder: Path) -> None:
    value = documents.read(folder / "stacks" / "new.yaml").value["Resources"]["Config"]
    assert value["Properties"] == {
        "ImageId": {"Ref": "Image"},
        "UserData": {"Fn::Base64": {"Fn::Join": ["", ["a", "b"]]}},
        "KeyName": {"Fn::GetAtt": ["Group", "Key"]},
    }


def test_mistakes_of_a_template_have_its_file_and_line(folder: Path) -> None:
    file = folder / "stacks" / "new.yaml"
    file.write_text(TEMPLATE.replace("Size: 2", "Size: 0").replace("!Ref Image", "!Guess Image"))
    size, function = refusal(folder / "roll.yaml")
    policy = "new.Resources.Group.UpdatePolicy.RollingUpdate"
    assert size == f"{file}:9: {policy}.MaxBatchSize: 0 is less than 1"
    assert function.startswith(f"{file}:16: new.Resources.Config.Properties.ImageId.Fn::Guess: ")
    assert "Known: Condition, Fn::And, " in function


def test_files_that_cannot_be_read_are_all_said(folder: Path) -> None:
    (folder / "stacks" / "old.yaml").unlink()
    (folder / "stacks" / "new.yaml").write_text("Resources: [")
    first, second = refusal(folder / "roll.yaml")
    assert first.startswith(f"{folder}/stacks/old.yaml: ")
    assert first.endswith(os.strerror(errno.ENOENT))
    assert second.startswith(f"{folder}/stacks/new.yaml:2: not YAML: ")


def test_a_template_and_a_file_with_it_are_one_too_many(folder: Path) -> None:
    with (folder / "roll.yaml").open("a") as file:
        file.write("old: {}\n")
    (line,) = refusal(folder / "roll.yaml")
    assert line.startswith(f"{folder}/roll.yaml:2: old_file: 'old' ")


def test_a_missing_template_is_said(folder: Path) -> None:
    (folder / "roll.yaml").write_text("kind: rolling_update\nold_file: stacks/old.yaml\n")
    (line,) = refusal(folder / "roll.yaml")
    assert line.startswith(f"{folder}/roll.yaml:1: ")
    assert all(field in line for field in ("'new'", "'new_file'"))


@pytest.mark.parametrize("text", ["a: !Ref b", "- !Ref b", "kind: solution\nactions: [!Ref b]"])
def test_other_documents_have_no_short_forms(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"plan\.yaml:\d: .* tag '!Ref'"):
        documents.parse(text, "plan.yaml")


@pytest.mark.parametrize("text", ["Resources: [1, 2]", "Resources: {a: 1}", "other: 1", "[]"])
def test_what_is_no_template_is_refused_with_a_sentence(folder: Path, text: str) -> None:
    (folder / "stacks" / "new.yaml").write_text(text)
    assert all(line.startswith(f"{folder}") for line in refusal(folder / "roll.yaml"))
