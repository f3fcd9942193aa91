# SPDX-License-Identifier: Apache-2.0
"""Renders reports as HTML: as one file, and as pages that a server keeps up to date.

The file needs no network, and can be read without its script.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from applier.report.action_rows import cut, spare
from applier.report.attention import progress, ran_for
from applier.report.content import ReportContent
from applier.store import PlanSummary
from applier.wording import duration, named, seconds_between
from planner.render.look import mark_of, style_of_pages
from planner.safe_text import visible

_PACKAGE = "applier.report"
#: The ids of the parts of a page, in their order; each has a template. Those of FOLDED are folded.
WORK = ("needs", "running", "left", "warnings")
PICTURES = ("timeline", "actions", "graph")
FOLDED = {
    "history": "History",
    "times": "Times",
    "what-if": "What if",
    "differences": "Differences",
    "facts": "Facts",
    "input": "Input and configuration",
}


@cache
def environment() -> Environment:
    """Return the environment of the templates.

    Every value is escaped, except those that pass through the filter ``safe``: what this program
    has drawn or rendered.
    """
    made = Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "at": _at,
        "breakable": _breakable,
        "content": _content,
        "cut": cut,
        "duration": duration,
        "mark": mark_of,
        "named": named,
        "progress": progress,
        "sorted_by": _sorted_by,
        "spare": spare,
    }
    made.globals |= {"ran_for": ran_for, "seconds_between": seconds_between}
    return made


def _at(moment: datetime | None, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a time on the clock of this machine; an empty text for None."""
    return f"{moment.astimezone():{form}}" if moment else ""


def _content(text: str) -> Markup:
    """Return the content of an element; unlike in attributes, quotes stay as they are.

    >>> print(_content('a "b" </pre>'))
    a "b" &lt;/pre&gt;
    """
    return Markup(html.escape(text, quote=False))  # noqa: S704


def _breakable(text: str) -> Markup:
    """Return the content of an element that may begin a new line after an underscore.

    >>> print(_breakable("set_<b>"))
    set_<wbr>&lt;b&gt;
    """
    return Markup(_content(text).replace("_", Markup("_<wbr>")))  # noqa: S704


def _sorted_by(seconds: float | None) -> Markup:
    """Return the attribute by which a cell is sorted, if it has a value.

    >>> print(_sorted_by(1.25) or "-", _sorted_by(None) or "-")
     data-v=1.25 -
    """
    return Markup("" if seconds is None else f" data-v={seconds:.4g}")  # noqa: S704


@cache
def style() -> str:
    """Return the style sheet of pages: Pico, that of the pictures, and our own."""
    # As an escape, the character is not made visible where a report is written to a terminal.
    pico = _read("pico.css").replace("\N{ZERO WIDTH SPACE}", r"\200b")
    return pico + style_of_pages() + _read("report.css")


@cache
def script() -> str:
    """Return the script that filters, sorts and copies."""
    return _read("report.js")


def _read(name: str) -> str:
    return files(_PACKAGE).joinpath("static", name).read_text(encoding="utf-8")


def policy() -> str:
    """Return the content security policy of a report: its own style and script, no network."""
    style_hash, script_hash = (_hash(text) for text in (style(), script()))
    return (
        f"default-src 'none'; style-src '{style_hash}'; script-src '{script_hash}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def render(report: ReportContent) -> str:
    """Return a report as HTML; hidden characters are made visible."""
    return (
        environment()
        .get_template("report.html")
        .render(
            **_layout(report, parts(report, live=False)),
            made=report.made,
            policy=policy(),
            style=style(),
            script=script(),
        )
    )


def _layout(report: ReportContent, found: Mapping[str, str]) -> dict[str, Any]:
    names = {"work": WORK, "pictures": PICTURES, "folded": FOLDED}
    return {"parts": found, "title": visible(title(report)), "uuid": report.plan.uuid, **names}


def parts(report: ReportContent, *, live: bool = True) -> dict[str, str]:
    """Return the HTML of each part of a page, and of each row of its table, by element id.

    Only those of a ``live`` page have buttons.
    """
    made = environment()
    tr = made.get_template("row.html").module.tr  # type: ignore[attr-defined]
    rows = {f"r{one.number}": visible(str(tr(one, live))).strip() for one in report.rows}
    labels = {action.uuid: action.label for action in report.plan.actions}
    given = {"report": report, "live": live, "rows": rows.values(), "labels": labels}
    names = ("top", *(["steer"] if live else []), *WORK, *PICTURES, *FOLDED)
    found = {
        name: visible(
            made.get_template(f"parts/{name}.html").render(
                **given, name=name, title=FOLDED.get(name)
            )
        )
        for name in names
    }
    return found | rows


def live(report: ReportContent, found: Mapping[str, str], **given: Any) -> str:
    """Return a live page, which its script updates when the record changes.

    ``found`` are the :func:`parts` of the report, ``given`` further values for the template.
    """
    return environment().get_template("live.html").render(**_layout(report, found), **given)


def title(report: ReportContent) -> str:
    """Return the title of a page about a plan."""
    return f"{report.plan.name or report.plan.planner}: {report.plan.state}"


def plans(found: Sequence[tuple[PlanSummary, str]], **given: Any) -> str:
    """Return the page that lists plans, each with what it needs somebody for, if it does.

    ``given`` are further values for the template.
    """
    return visible(environment().get_template("plans.html").render(plans=found, **given))


def static(name: str) -> str:
    """Return the text of a static file; that of report.css includes the styles of the pictures."""
    return style() if name == "report.css" else _read(name)
