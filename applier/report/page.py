# SPDX-License-Identifier: Apache-2.0
"""Renders reports as HTML: as one file, and as pages that a server keeps up to date.

The file needs no network, and can be read without its script.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from applier.report.values import Listed, ReportContent
from planner.render.look import style_of_pages
from planner.safe_text import visible

_PACKAGE = "applier.report"
#: The ids of the parts of a report below the head, in their order; each has a template.
PARTS = (
    *("left", "warnings", "facts", "timeline", "graph", "actions", "what-if", "times"),
    *("differences", "history", "input"),
)


@cache
def environment() -> Environment:
    """Return the environment of the templates.

    Every value is escaped, except those that pass through the filter ``element``.
    """
    made = Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["element"] = _element
    made.filters["content"] = _content
    made.filters["breakable"] = _breakable
    made.filters["sorted_by"] = _sorted_by
    return made


def _element(text: str) -> Markup:
    """Return an element of SVG that this program has drawn, whose texts are escaped already."""
    return Markup(text)  # noqa: S704


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
    """Return the style sheet of reports, with that of their pictures."""
    return style_of_pages() + _read("report.css")


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
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def render(report: ReportContent) -> str:
    """Return a report as HTML; hidden characters are made visible."""
    template = environment().get_template("report.html")
    return visible(
        template.render(
            report=report,
            names=PARTS,
            live=False,
            policy=policy(),
            style=_element(style()),
            script=_element(script()),
        )
    )


def parts(report: ReportContent) -> dict[str, str]:
    """Return the HTML of each part of a live page, and of each row of its table, by element id."""
    made = environment()
    found = {
        name: visible(made.get_template(f"parts/{name}.html").render(report=report, live=True))
        for name in ("top", *PARTS)
    }
    row = made.get_template("row.html").module.tr  # type: ignore[attr-defined]
    return found | {f"r{one.number}": visible(str(row(one, True))).strip() for one in report.rows}


def live(report: ReportContent, found: Mapping[str, str], **given: Any) -> str:
    """Return a live page, which its script updates when the record changes.

    ``found`` are the :func:`parts` of the report, ``given`` further values for the template.
    """
    template = environment().get_template("live.html")
    return template.render(
        parts=found,
        names=PARTS,
        uuid=report.uuid,
        title=visible(title(report)),
        **given,
    )


def title(report: ReportContent) -> str:
    """Return the title of a page about a plan."""
    return f"{report.title}: {report.state}"


def plans(found: Sequence[Listed]) -> str:
    """Return the page that lists plans."""
    template = environment().get_template("plans.html")
    return visible(template.render(plans=found))


def static(name: str) -> str:
    """Return the text of a static file; that of report.css includes the styles of the pictures."""
    return style() if name == "report.css" else _read(name)
