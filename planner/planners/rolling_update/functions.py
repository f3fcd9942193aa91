# SPDX-License-Identifier: Apache-2.0
"""Evaluates the intrinsic functions of templates that groups use.

A value that exists only in the cloud (the id of another resource, an attribute, the region) is
replaced by a text such as ``${WebSecurityGroup}``. In two templates, such texts are equal exactly
if they refer to the same resource, attribute or region.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from planner.errors import Path, accepted
from planner.planners.rolling_update.conditions import (
    NO_VALUE,
    UNRESOLVED,
    TemplateValues,
    as_text,
    known,
    placeholder,
    plain_text,
    section,
)

#: The result of Fn::GetAZs: the default zone of Nova.
ZONES = ("nova",)
_TEMPLATE_AND_PARAMS = "'template' and 'params' are expected"


class Resolver(TemplateValues):
    """Has the functions of both forms of templates, by their names in these.

    ``given`` are values of parameters, which override their defaults. ``files`` are the contents of
    files by name.
    """

    def __init__(
        self,
        template: Mapping[str, Any],
        given: Mapping[str, Any],
        root: Path,
        hidden: Collection[str] = (),
        files: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(template, root, hidden)
        self._resources = section(template, "Resources")
        self._parameters = section(template, "Parameters")
        self._mappings = section(template, "Mappings")
        self._given = given
        #: The names of parameters that are declared or used.
        self.known_parameters: set[str] = set(self._parameters)
        self._files = files or {}
        #: The names of files that the template refers to, and that are not given.
        self.unknown_files: set[str] = set()

    def texts(self) -> Mapping[str, Any]:
        """Return what else than the template itself may bring texts: parameters and files."""
        return {"given": self._given, "declared": self._parameters, "files": self._files}

    def _ref(self, name: Any, path: Path) -> Any:
        if not isinstance(name, str):
            return self.wrong("the name of a parameter or a resource is expected", path)
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in self._given or name in self._parameters:
            return self._parameter(name, path)
        if name in self._resources or name.startswith("AWS::"):
            return f"${{{name}}}"
        known = {*self._given, *self._parameters, *self._resources}
        return self.wrong(f"no parameter or resource {name!r}; {accepted(name, known)}", path)

    def _parameter(self, name: Any, path: Path) -> Any:
        inside: list[Any] = []
        if isinstance(name, list) and name:
            name, *inside = name
        if not isinstance(name, str):
            return self.wrong("the name of a parameter is expected", path)
        self.known_parameters.add(name)
        declared = self._parameters.get(name)
        declared = declared if isinstance(declared, Mapping) else {}
        found = self._given.get(name)
        if found is None:
            found = declared.get("Default", declared.get("default"))
        if found is None and name.startswith("OS::"):
            return f"${{{name}}}"
        known = {*self._given, *self._parameters}
        if name not in known:
            return self.wrong(f"no parameter {name!r}; {accepted(name, known)}", path)
        if found is None:
            text = f"parameter {name!r} has no default: set its value in 'parameters'"
            return self.wrong(text, path)
        kind = str(declared.get("Type", declared.get("type", "")))
        if isinstance(found, str) and re.match(r"CommaDelimitedList|comma_delimited|List<", kind):
            found = [part.strip() for part in found.split(",")]
        if isinstance(found, str) and kind.lower() == "json":
            try:
                found = json.loads(found)
            except ValueError:
                return self.wrong(f"the value of parameter {name!r} is not JSON", path)
        if name in self._hidden:
            found = placeholder(name, found)
        return self._inside(found, inside, path)

    def _inside(self, value: Any, keys: list[Any], path: Path) -> Any:
        for key in keys:
            found = _entry(value, key)
            if found is None:
                return self.wrong(f"there is no {key!r} in it", path)
            value = found
        return value

    def _resource(self, name: Any, path: Path) -> Any:
        if isinstance(name, str) and name in self._resources:
            return f"${{{name}}}"
        return self.wrong(f"no resource {name!r}; {accepted(name, self._resources)}", path)

    def _attribute(self, argument: Any, path: Path) -> Any:
        parts = argument.split(".", 1) if isinstance(argument, str) else argument
        if not (isinstance(parts, list) and len(parts) > 1):
            return self.wrong("[RESOURCE, ATTRIBUTE] is expected", path)
        if self._resource(parts[0], path) is UNRESOLVED:
            return UNRESOLVED
        return f"${{{'.'.join(map(str, (parts[0], *self.value(parts[1:], path))))}}}"

    def _concatenated(self, argument: Any, path: Path) -> Any:
        return self._merged(argument, path, list)

    def _merged(self, argument: Any, path: Path, kind: type = dict) -> Any:
        """Return the lists, or the mappings, of a list as one; None counts as empty."""
        parts = known(self.value(argument, path))
        if isinstance(parts, list) and UNRESOLVED in parts:
            return UNRESOLVED
        if not isinstance(parts, list) or not all(isinstance(p or kind(), kind) for p in parts):
            form = "lists" if kind is list else "mappings"
            return self.wrong(f"a list of {form} is expected", path)
        if kind is list:
            return [entry for part in parts for entry in part or ()]
        return {key: value for part in parts for key, value in (part or {}).items()}

    def _join(self, argument: Any, path: Path) -> Any:
        delimiter, parts = self.arguments(argument, path, "[DELIMITER, LIST]", 2)
        if _is_cloudy(parts):
            return _opaque(parts, "joined by", delimiter)
        if not isinstance(delimiter, str) or not isinstance(parts, list):
            return self.wrong("[DELIMITER, LIST] is expected", path)
        texts = [plain_text(part) for part in parts]
        for i, text in enumerate(texts):
            if text is None and parts[i] is not UNRESOLVED:
                self.wrong("only texts and numbers can be joined", (*path, 1, i))
        return UNRESOLVED if None in texts else delimiter.join(map(str, texts))

    def _split(self, argument: Any, path: Path) -> Any:
        found = self.arguments(argument, path, "[DELIMITER, TEXT]", 2)
        if not all(isinstance(part, str) and part for part in found):
            return self.wrong("[DELIMITER, TEXT] is expected", path)
        delimiter, text = found
        return _opaque(text, "split by", delimiter) if "${" in text else text.split(delimiter)

    def _select(self, argument: Any, path: Path) -> Any:
        index, among = self.arguments(argument, path, "[INDEX, LIST]", 2)
        if _is_cloudy(among):
            return _opaque(among, index)
        found = _entry(among, index)
        if found is None:
            size = f"{len(among)} entries" if isinstance(among, list | dict) else "no list"
            return self.wrong(f"there is no entry {index!r}: {size}", path)
        return found

    def _find_in_map(self, argument: Any, path: Path) -> Any:
        keys = self.arguments(argument, path, "[MAP, KEY, KEY]", 3)
        found: Any = self._mappings
        for key in keys:
            known = found if isinstance(found, Mapping) else {}
            if _is_cloudy(key):
                # Equal in two templates exactly if all that the cloud may choose from is equal.
                return _opaque(*keys, hashlib.sha256(as_text(known).encode()).hexdigest()[:6])
            if not isinstance(key, str | int) or str(key) not in known:
                text = f"no {key!r} in Mappings; {accepted(key, map(str, known))}"
                return self.wrong(text, path)
            found = known[str(key)]
        return found

    def _sub(self, argument: Any, path: Path) -> Any:
        before = len(self.mistakes)
        text, own = argument, {}
        if isinstance(argument, list) and len(argument) == 2:
            text, own = argument[0], self.value(argument[1], (*path, 1))
        if not isinstance(text, str) or not isinstance(own, Mapping):
            return self.wrong("a text, or [TEXT, VALUES] is expected", path)

        def found(match: re.Match[str]) -> str:
            name = match[1]
            if name.startswith("!"):
                return f"${{{name[1:]}}}"
            if name in own:
                value = own[name]
            else:
                value = (self._attribute if "." in name else self._ref)(name, path)
            written = plain_text(value)
            if written is None and value is not UNRESOLVED:
                self.wrong(f"{name!r} is no text", path)
            return written or ""

        whole = re.sub(r"\$\{([^}]*)\}", found, text)
        return whole if len(self.mistakes) == before else UNRESOLVED

    def _replaced(self, argument: Any, path: Path) -> Any:
        given = known(self.value(argument, path))
        if not isinstance(given, Mapping):
            return self.wrong(_TEMPLATE_AND_PARAMS, path)
        text, words = given.get("template"), given.get("params")
        return self._substituted(words, text, _TEMPLATE_AND_PARAMS, path)

    def _replace(self, argument: Any, path: Path) -> Any:
        words, text = self.arguments(argument, path, "[VALUES, TEXT]", 2)
        return self._substituted(words, text, "[VALUES, TEXT] is expected", path)

    def _substituted(self, words: Any, text: Any, form: str, path: Path) -> Any:
        """Replace words in one pass, the longest first; lists and mappings become JSON."""
        for value in (words, text, *(words.values() if isinstance(words, Mapping) else ())):
            known(value)
        if not isinstance(words, Mapping) or not isinstance(text, str):
            return self.wrong(form, path)
        longest = sorted(filter(None, words), key=len, reverse=True)
        either = "|".join(map(re.escape, longest))
        return re.sub(either, lambda m: as_text(words[m[0]]), text) if longest else text

    def _import(self, argument: Any, path: Path) -> Any:
        return _opaque("import", known(self.value(argument, path)))

    def _zones(self, argument: Any, path: Path) -> Any:
        known(self.value(argument, path))
        return list(ZONES)

    def _file(self, argument: Any, path: Path) -> Any:
        if not isinstance(argument, str):
            return self.wrong("a name", path)
        if argument in self._files:
            return self._files[argument]
        self.unknown_files.add(argument)
        return _opaque("file", argument)


Resolver.functions = {
    "Ref": Resolver._ref,
    "Condition": Resolver.decided,
    "Fn::And": Resolver.all_or_any,
    "Fn::Base64": Resolver.value,  # Heat does not encode the text
    "Fn::Equals": Resolver.equals,
    "Fn::FindInMap": Resolver._find_in_map,
    "Fn::GetAZs": Resolver._zones,
    "Fn::GetAtt": Resolver._attribute,
    "Fn::If": Resolver.chosen,
    "Fn::ImportValue": Resolver._import,
    "Fn::Join": Resolver._join,
    "Fn::Not": Resolver.negated,
    "Fn::Or": Resolver.all_or_any,
    "Fn::Replace": Resolver._replace,
    "Fn::Select": Resolver._select,
    "Fn::Split": Resolver._split,
    "Fn::Sub": Resolver._sub,
    "and": Resolver.all_or_any,
    "equals": Resolver.equals,
    "get_attr": Resolver._attribute,
    "get_file": Resolver._file,
    "get_param": Resolver._parameter,
    "get_resource": Resolver._resource,
    "if": Resolver.chosen,
    "list_concat": Resolver._concatenated,
    "list_join": Resolver._join,
    "map_merge": Resolver._merged,
    "not": Resolver.negated,
    "or": Resolver.all_or_any,
    "str_replace": Resolver._replaced,
    "str_replace_strict": Resolver._replaced,
    "str_split": Resolver._split,
}


def _is_cloudy(value: Any) -> bool:
    """Return whether a value is known only in the cloud."""
    return isinstance(value, str) and value.startswith("${")


def _opaque(*parts: Any) -> str:
    """Return the text for a value that only the cloud can make of these parts."""
    return f"${{{' '.join(re.sub('[${}]', '', as_text(part)) for part in parts)}}}"


def _entry(among: Any, index: Any) -> Any:
    """Return an entry of a list by index (number or text), or of a mapping by key; else None."""
    if isinstance(among, Mapping):
        return among.get(str(index))
    if not isinstance(among, list) or not re.fullmatch("[0-9]{1,9}", str(index)):
        return None
    return among[int(index)] if int(index) < len(among) else None
