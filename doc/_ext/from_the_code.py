# SPDX-License-Identifier: Apache-2.0
"""Directives that write reference pages from what the code itself says, when the pages are built.

Each gives reStructuredText, which is read in place: plans, states, effects, schemas, options,
planners, action types, command line.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import pkgutil
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import statecharts
import yaml
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from drawings import Edge, Node, layered
from oslo_config import cfg
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles
from usage import folded, gives_rows, metavar, of_cliff, own_arguments, usage

from applier import configuration
from applier.cli.help import GROUPS
from applier.cli.program import Program
from planner import make_plan
from planner.making import registry
from planner.plan import effects
from planner.plan.model import Action, ActionPlan


class Written(SphinxDirective):
    """Reads the lines that :meth:`lines` gives as if they stood in the page."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Return the lines of the page."""

    def run(self) -> list[nodes.Node]:
        source = self.get_source_info()[0]
        return self.read(StringList(list(self.lines()), source=source))

    def read(self, lines: StringList) -> list[nodes.Node]:
        parent = nodes.section()
        parent.document = self.state.document
        nested_parse_with_titles(self.state, lines, parent)
        return list(parent.children)


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], widths: str = "auto"
) -> Iterator[str]:
    """Write a table; cells are reStructuredText of any number of lines."""
    yield from (".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", "")
    for row in [head, *rows]:
        for i, cell in enumerate(row):
            first, *more = cell.splitlines() or [""]
            yield f"   {'* ' if i == 0 else '  '}- {first}".rstrip()
            yield from (f"       {line}".rstrip() for line in more)
    yield ""


def heading(text: str, mark: str) -> Iterator[str]:
    yield from ("", text, mark * len(text), "")


def code(value: object) -> str:
    """Write something as code; nothing stays nothing."""
    return f"``{value}``" if value not in ("", None) else ""


def picture(svg: str, caption: str) -> nodes.raw:
    html = f'<figure class="drawing">{svg}<figcaption>{caption}</figcaption></figure>'
    return nodes.raw("", html, format="html")


# Plans


def plan_of(path: Path) -> ActionPlan:
    """Plan a document beside the pages; nobody's configuration has a say."""
    return make_plan(path)


def plan_edges(plan: ActionPlan, kinds: Sequence[str], ends: bool = False) -> list[Edge]:
    """Return parents (``order``) and needs of a plan as edges between names.

    One that is both is given once, as a need. ``ends`` adds I before what has nothing before it,
    and E behind what has nothing behind it.
    """
    names = {a.uuid: a.label for a in plan.actions}
    found: dict[tuple[str, str], str] = {}
    for action in plan.actions:
        links = {"order": action.parents, "need": action.needs}
        for kind in kinds:
            found.update(dict.fromkeys(((names[u], action.label) for u in links[kind]), kind))
    edges = [Edge(*pair, kind) for pair, kind in found.items()]
    if ends:
        behind, before = {e.first for e in edges}, {e.second for e in edges}
        first = [Edge("I", n, "line") for n in names.values() if n not in before]
        last = [Edge(n, "E", "line") for n in names.values() if n not in behind]
        edges = [*first, *edges, *last]
    return edges


class PlanDrawing(Written):
    """Plans a document and draws what the planner gives; ``:show:`` is parents, needs or both."""

    required_arguments = 1
    option_spec = {
        "show": lambda text: directives.choice(text, ("parents", "needs", "both")),
        "ends": directives.flag,
        "caption": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        relative, name = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        show = self.options.get("show", "parents")
        kinds = {"parents": ["order"], "needs": ["need"], "both": ["order", "need"]}[show]
        svg = plan_drawing(Path(name), kinds, "ends" in self.options)
        return [picture(svg, self.options.get("caption", ""))]


def plan_drawing(path: Path, kinds: Sequence[str], ends: bool) -> str:
    """Draw the plan of a document."""
    plan = plan_of(path)
    edges = plan_edges(plan, kinds, ends)
    if kinds == ["order"]:
        # Nothing to tell apart: parents are drawn as plainly as they can be.
        edges = [e._replace(kind="need") if e.kind == "order" else e for e in edges]
    names = [a.label for a in plan.actions]
    boxes = [*(["I"] if ends else []), *names, *(["E"] if ends else [])]
    drawn = [Node(n, "dot" if ends and n in ("I", "E") else "action") for n in boxes]
    return layered(plan.name or path.stem, drawn, edges)


class PlanTable(Written):
    """The actions of a document's plan in schedule order, with parents and needs by name."""

    required_arguments = 1

    def lines(self) -> Iterator[str]:
        plan = plan_of(Path(self.env.relfn2path(self.arguments[0])[1]))
        names = {a.uuid: a.label for a in plan.actions}

        def row(action: Action) -> list[str]:
            links = (", ".join(names[u] for u in found) for found in (action.parents, action.needs))
            return [code(action.label), action.reason or "", *(text or "\\-" for text in links)]

        yield from table(["action", "why here", "parents", "needs"], [row(a) for a in plan.actions])


# States and effects


class StateChart(Written):
    """The picture of the table of states of ``plan`` or ``action``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        caption = "Solid: the engine. Dashed: an operator. Thick frame: nothing follows."
        return [picture(statecharts.chart(self.arguments[0]), caption)]


class StateTable(Written):
    """The rows of the table of states of ``plan`` or ``action``."""

    required_arguments = 1

    def lines(self) -> Iterator[str]:
        rows = statecharts.CHARTS[self.arguments[0]][1]
        cells = [[code(r.old), code(r.new), r.who.lower(), r.why] for r in rows]
        yield from table(["from", "to", "who", "why"], cells)


class EffectsTable(Written):
    """The rows of planner.plan.effects.PAIRS."""

    def lines(self) -> Iterator[str]:
        rows = []
        for number, pair in enumerate(effects.PAIRS, 1):
            both = " (either way round)" if pair.in_order else ""
            kinds = ", ".join(sorted(pair.kinds))
            why = pair.why.format(resource="it")
            rows.append([str(number), kinds, code(pair.needing), code(pair.needed) + both, why])
        yield from table(["", "on one", "what", "needs what", "because"], rows)


# Schemas


class SchemaFields(Written):
    """The fields of a JSON Schema, ``module:NAME``, with those of lists and mappings inside."""

    required_arguments = 1

    def lines(self) -> Iterator[str]:
        module, _, name = self.arguments[0].partition(":")
        yield from schema_tables(getattr(import_module(module), name), "")


def schema_tables(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Write a table for a mapping, then one for each mapping with fields of its own inside."""
    required = schema.get("required", ())
    rows, inside = [], []
    for name, field in schema.get("properties", {}).items():
        must = "yes" if name in required else ""
        rows.append([code(name), must, kind_of(field), field.get("description", "")])
        item = field.get("items", field)
        if item.get("properties"):
            mark = "[]" if "items" in field else ""
            inside.append((item, f"{path}{name}{mark}."))
    if path:
        yield from ("", f"**Fields of** ``{path.rstrip('.')}``", "")
    head = ["field", "required", "value", "meaning"]
    if not any(meaning for *_, meaning in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    yield from table(head, rows)
    for item, place in inside:
        yield from schema_tables(item, place)


_WORDS = {
    "object": "mapping",
    "array": "list",
    "string": "text",
    "integer": "whole number",
    "boolean": "true or false",
}


def kind_of(field: Mapping[str, Any]) -> str:
    """Say what a field may hold."""
    if "enum" in field:
        return ", ".join(code("null" if v is None else v) for v in field["enum"])
    if "const" in field:
        return code(field["const"])
    kinds = field.get("type", "anything")
    text = " or ".join(_WORDS.get(k, k) for k in ([kinds] if isinstance(kinds, str) else kinds))
    if "items" in field and "properties" not in field["items"]:
        text += f" of {kind_of(field['items'])}"
    if isinstance(values := field.get("additionalProperties"), Mapping):
        text += f" to {kind_of(values)}"
    bounds = {"minimum": "from {} up", "exclusiveMinimum": "more than {}", "maximum": "up to {}"}
    told = [words.format(field[key]) for key, words in bounds.items() if key in field]
    if "title" in field and "properties" not in field:
        told.append(field["title"])
    return f"{text}, {', '.join(told)}" if told else text


# Plugins


class PlannerReference(Written):
    """What a registered planner says of itself, and its options; all planners without a name."""

    optional_arguments = 1

    def lines(self) -> Iterator[str]:
        if self.arguments:
            yield from planner_lines(self.arguments[0])
            return
        for name in own(registry.PLANNERS):
            yield from heading(name, "-")
            yield from planner_lines(name)


def own(namespace: str) -> list[str]:
    """List the plugins of this distribution: what else is installed here is no part of it."""
    return [n for n in registry.names(namespace) if _module(namespace, n) in ("planner", "applier")]


def _module(namespace: str, name: str) -> str:
    return str(registry.load(namespace, name).__module__.partition(".")[0])


def planner_lines(name: str) -> Iterator[str]:
    found = registry.planner(name)
    yield from ((inspect.getdoc(found) or "").splitlines())
    yield ""
    yield f"Reads documents of kind ``{found.KIND}``."
    if not found.OPTIONS:
        yield "It has no options."
        return
    yield from (f"Options of the section ``[watcher_planners.{name}]``:", "")
    yield from option_table(found.OPTIONS)


def option_table(options: Sequence[cfg.Opt]) -> Iterator[str]:
    """Write what there is to set, what it means, and what holds where nothing is set."""
    rows = []
    for opt in options:
        text = str(opt.help).replace("*", "\\*")
        choices = getattr(opt.type, "choices", None)
        if isinstance(choices, Mapping):
            text += "\n\n" + "\n".join(f"- {code(k)}: {v}" for k, v in choices.items())
        default = opt.sample_default if opt.sample_default is not None else opt.default
        shown = code("" if default == {} else default)
        if isinstance(default, Mapping) and default:
            shown = "\n".join(f"| {code(f'{k}: {v}')}" for k, v in default.items())
        if opt.default is None and default is not None:
            shown = f"none; for example {shown}"
        rows.append([code(opt.name), text, shown])
    yield from table(["option", "meaning", "default"], rows)


class Options(Written):
    """Every option by section: ours, and those of the plugins that come with us."""

    def lines(self) -> Iterator[str]:
        namespaces = {section: namespace for namespace, section in registry.SECTIONS.items()}
        of_no_plugin = [group for group, _ in configuration.OWN]
        for group, options in configuration.list_opts():
            name = group if isinstance(group, str) else group.name
            section, dot, plugin = name.partition(".")
            of_ours = own(namespaces[section]) if dot else own(registry.CLOUDS)
            if group in of_no_plugin or (plugin or name) in of_ours:
                yield from heading(f"[{name}]", "-")
                if not isinstance(group, str) and group.help:
                    yield from (group.help, "")
                yield from option_table(options)


class ActionTypes(Written):
    """Every registered action type: what it does, touches and takes."""

    def lines(self) -> Iterator[str]:
        known: Any = registry.ActionTypes()
        for name in own(registry.ACTIONS):
            found = known[name]
            yield from heading(name, "-")
            yield from (inspect.getdoc(found) or "").splitlines()
            yield ""
            example = (found.SCHEMA.get("examples") or [{}])[0]
            touched = found.touches(example)
            what = ", ".join(code(f"{t.effect} {t.resource.partition(':')[0]}") for t in touched)
            yield f"Touches: {what or 'nothing'}."
            yield ""
            yield from schema_tables(found.SCHEMA, "")
            if found.OPTIONS:
                yield from (f"Options of the section ``[watcher_actions.{name}]``:", "")
                yield from option_table(found.OPTIONS)
            yield from ("An example of its parameters:", "", ".. code-block:: yaml", "")
            text = yaml.safe_dump(json.loads(json.dumps(example)), sort_keys=False)
            yield from (f"   {line}" for line in text.splitlines())
            yield ""


# Command line


class Verbs(Written):
    """Every verb by group: usage, what it does, arguments, options, examples."""

    def lines(self) -> Iterator[str]:
        program = Program()
        loaded = {name: entry.load() for name, entry in program.command_manager}
        for title, verbs in GROUPS.items():
            yield from heading(title, "-")
            for name in verbs:
                verb = loaded[name](program, None)
                yield from heading(name, "~")
                yield from verb_lines(verb, verb.get_parser(f"actionplan {name}"))


def verb_lines(verb: Any, parser: argparse.ArgumentParser) -> Iterator[str]:
    own = own_arguments(parser)
    yield from inspect.cleandoc(parser.description or "").splitlines()
    yield from ("", ".. code-block:: text", "")
    yield from (f"   {line}" for line in folded(parser.prog, list(map(usage, own))))
    yield ""
    if own:
        yield from _arguments(own)
    if gives_rows(parser):
        yield from ("Gives rows: see :ref:`formats <rows>`.", "")
    yield from ("Examples:", "", ".. code-block:: text", "")
    yield from (f"   actionplan {line}" for line in verb.EXAMPLES)
    yield ""


class RowOptions(Written):
    """The options of every verb that lists rows."""

    def lines(self) -> Iterator[str]:
        program = Program()
        listing = program.command_manager.find_command(["list"])[0](program, None)
        yield from _arguments(of_cliff(listing.get_parser("actionplan list")))


def _arguments(arguments: Sequence[argparse.Action]) -> Iterator[str]:
    yield from table(["argument", "meaning"], [[_name(a), _help(a)] for a in arguments])


def _name(action: argparse.Action) -> str:
    names = action.option_strings or [""]
    return ", ".join(code(f"{n} {metavar(action)}".strip()) for n in names)


def _help(action: argparse.Action) -> str:
    text = (action.help or "").replace("*", "\\*")
    if action.choices and action.metavar is None:
        text += ": " + ", ".join(map(code, action.choices))
    return text


class Modules(Written):
    """Every module of a package: what it says of itself and of what is public in it."""

    required_arguments = 1

    def lines(self) -> Iterator[str]:
        package = import_module(self.arguments[0])
        inside = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        for name in (package.__name__, *sorted(module.name for module in inside)):
            yield from heading(name, "-")
            yield from (f".. automodule:: {name}", "")


class Rooms(Written):
    """Every folder of a package with its modules: what each says first of itself.

    Files are read, not imported: some need programs that are not here, such as Watcher.
    """

    required_arguments = 1

    def lines(self) -> Iterator[str]:
        top = Path(import_module(self.arguments[0]).__path__[0])
        yield from heading(top.name, "-")
        for room in sorted(path.parent for path in top.rglob("__init__.py")):
            name = ".".join((top.name, *room.relative_to(top).parts))
            if room != top:
                yield from heading(name, "~")
            # An __init__.py is the room itself.
            yield from (first_sentence(room / "__init__.py"), "")
            files = (path for path in sorted(room.glob("*.py")) if path.stem != "__init__")
            rows = [(code(path.name), first_sentence(path)) for path in files]
            yield from table(("File", "What it holds"), rows, "30 70") if rows else ()


def first_sentence(module: Path) -> str:
    """Return the first paragraph of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(module.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split())


DIRECTIVES: Mapping[str, type[SphinxDirective]] = {
    "plan-drawing": PlanDrawing,
    "plan-table": PlanTable,
    "state-chart": StateChart,
    "state-table": StateTable,
    "effects-table": EffectsTable,
    "schema-fields": SchemaFields,
    "planner-reference": PlannerReference,
    "options": Options,
    "action-types": ActionTypes,
    "row-options": RowOptions,
    "verbs": Verbs,
    "modules": Modules,
    "rooms": Rooms,
}


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
