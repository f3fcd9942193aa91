# SPDX-License-Identifier: Apache-2.0
"""A client of the HTTP API, for scripts and notebooks.

from applier.client import Client

plan = Client("http://127.0.0.1:9322").create("maintenance.yaml")
plan.start().wait()
print(plan.why("move-db-1"))
"""

from __future__ import annotations

import base64
import html
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote
from uuid import uuid4

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

Json = dict[str, Any]
#: The states after which nothing happens unless somebody asks for it.
RESTING = frozenset(
    {"RECOMMENDED", "PAUSED", "SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED", "DELETED"}
)
#: How often a request is sent whose answer was lost, and the seconds before the last but one.
TRIES, PAUSE_S = 4, 1.0
#: For how many seconds an answer is awaited, and events by one request.
TIMEOUT_S, _WAIT_S = 60.0, 20
_GONE = 410


class ApiError(Exception):
    """The API refused a request, or does not answer: the text is its sentence.

    ``status`` is that of HTTP, 0 without an answer; ``problem`` is the JSON of the answer.
    """

    def __init__(self, text: str, status: int = 0, problem: Json | None = None) -> None:
        super().__init__(text)
        self.status, self.problem = status, problem or {}


class _Again(Retry):
    """Sends a request again, also one that is being carried out already (409 with Retry-After)."""

    RETRY_AFTER_STATUS_CODES = Retry.RETRY_AFTER_STATUS_CODES | {409}


def _error_of(answer: requests.Response) -> ApiError:
    try:
        problem = answer.json()
        return ApiError(str(problem["detail"]), answer.status_code, problem)
    except (ValueError, LookupError, TypeError):  # a server in front of the API answers
        text = f"{answer.url} answers {answer.status_code} {answer.reason}"
        return ApiError(text, answer.status_code)


class Client:
    """Asks the API at a URL; ``auth`` is a user and a password, ``token`` one of Keystone."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:9322",
        *,
        auth: tuple[str, str] | None = None,
        token: str | None = None,
    ) -> None:
        self.url, self._session = url.rstrip("/"), requests.Session()
        self._session.auth = auth
        # Changes too: a repeated request has the key of the first one.
        again = _Again(
            TRIES - 1, backoff_factor=PAUSE_S, allowed_methods=None, raise_on_status=False
        )
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=again))
        if token is not None:
            self._session.headers["X-Auth-Token"] = token

    def ask(self, method: str, path: str, **sent: Any) -> requests.Response:
        """Send a request below ``/v2``, and return the answer; raises ApiError.

        ``sent`` has options of requests: ``params``, ``json``, ``data``. Where the answer was lost,
        or the record cannot be reached, it is sent again; a change is made once nevertheless.
        """
        headers = {} if method == "GET" else {"Idempotency-Key": str(uuid4())}
        if "data" in sent:
            headers["Content-Type"] = "application/yaml"
        url = f"{self.url}/v2{path}"
        try:
            answer = self._session.request(method, url, headers=headers, timeout=TIMEOUT_S, **sent)
        except requests.RequestException as reason:
            raise ApiError(f"{self.url} does not answer: {reason}") from reason
        if answer.ok:
            return answer
        raise _error_of(answer)

    def create(
        self,
        document: Mapping[str, Any] | str | Path,
        *,
        planner: str | None = None,
        settings: Sequence[str] = (),
        facts_from: str | None = None,
        why: str | None = None,
    ) -> Plan:
        """Make and store a plan of a document: a mapping, or the path of a file, JSON or YAML.

        ``settings`` are texts KEY=VALUE, such as ``migrate.parallelization=2``.
        """
        query = {"planner": planner, "set": list(settings), "facts_from": facts_from, "why": why}
        if isinstance(document, Mapping):
            made = self.ask("POST", "/plans", params=query, json=document)
        else:  # JSON is YAML as well
            made = self.ask("POST", "/plans", params=query, data=Path(document).read_bytes())
        return Plan(self, made.json())

    def plan(self, reference: str = "last") -> Plan:
        """Return a plan by its uuid, a unique beginning of it, its name, or ``last``."""
        return Plan(self, self.ask("GET", f"/plans/{quote(reference, safe='')}").json())

    def plans(self, *, most: int = 25, **filters: Any) -> Plans:
        """List plans, the latest first: at most so many, by the filters of GET /v2/plans.

        These are ``state``, ``name``, ``search``, ``planner``, ``creator``, ``since``, ``until``.
        """
        found: list[Json] = []
        query = {**filters, "limit": min(most, 1000)}
        while len(found) < most:
            page = self.ask("GET", "/plans", params=query).json()
            found += page["items"]
            if "next" not in page:
                break
            query["after"] = found[-1]["uuid"]
        return Plans(found[:most])


class Plans(list[Json]):
    """Plans of a list, without their actions; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        rows = []
        for plan in self:
            counts = plan["actions"]
            well = counts.get("SUCCEEDED", 0) + counts.get("SKIPPED", 0)
            state = "damaged" if plan["damage"] else plan["state"]
            made = (plan["created_at"] or "")[:19].replace("T", " ")
            row = (plan["uuid"][:8], plan["name"], plan["planner"], state)
            rows.append((*row, f"{well} of {sum(counts.values())}", made, plan["creator"]))
        return _table(("plan", "name", "planner", "state", "ended well", "made", "by"), rows)


class Plan:
    """A plan as it was when it was read last: ``data`` is its JSON.

    A notebook shows it as a picture, and its actions as a table.
    """

    def __init__(self, client: Client, data: Json) -> None:
        self._client, self.data = client, data

    def __repr__(self) -> str:
        return f"<Plan {self.uuid[:8]} {self.data['name'] or ''} {self.state}>"

    @property
    def uuid(self) -> str:
        """The uuid of the plan."""
        return str(self.data["uuid"])

    @property
    def state(self) -> str:
        """The state of the plan, such as ``ONGOING``."""
        return str(self.data["state"])

    @property
    def actions(self) -> list[Json]:
        """The actions in schedule order."""
        return list(self.data["actions"])

    def _get(self, path: str = "") -> requests.Response:
        return self._client.ask("GET", f"/plans/{self.uuid}{path}")

    def refresh(self) -> Self:
        """Read the plan again."""
        self.data = self._get().json()
        return self

    def _change(self, verb: str, **body: Any) -> Self:
        given = {name: value for name, value in body.items() if value not in (None, False)}
        self._client.ask("POST", f"/plans/{self.uuid}/{verb}", json=given)
        return self.refresh()

    def approve(self, why: str) -> Self:
        """Approve the plan as it is now."""
        return self._change("approve", why=why)

    def start(self, *, at: str | None = None, why: str | None = None, **more: bool) -> Self:
        """Queue the plan for an applier service; ``at`` is a time with an offset.

        ``more`` may be ``in_window`` or ``accept_drift``.
        """
        return self._change("start", at=at, why=why, **more)

    def stop(self, how: str = "pause", *, now: bool = False, why: str | None = None) -> Self:
        """Pause the plan, or ``cancel`` it.

        With ``now``, nodes that have begun are left half done.
        """
        return self._change(how, now=now, why=why)

    def resume(self, why: str | None = None) -> Self:
        """Go on with a plan that was paused, failed, was cancelled, or lost its applier."""
        return self._change("resume", why=why)

    def wait(
        self, progress: Callable[[Plan], None] | None = None, timeout_s: float = math.inf
    ) -> Self:
        """Wait until the plan has ended or is paused; raises TimeoutError after ``timeout_s``.

        ``progress`` is called first and after each change; by default, a line is printed.
        """
        told, until = progress or _print_progress, time.monotonic() + timeout_s
        last = self._newest(told)
        while self.state not in RESTING:
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise TimeoutError(f"{self!r} has not ended after {timeout_s:g} s")
            try:
                page = self._events(after=last, wait_s=int(min(_WAIT_S, left_s + 1)))
            except ApiError as error:
                if error.status != _GONE:
                    raise
                last = self._newest(told)  # events of so long ago were deleted
                continue
            last = page["last"]
            if self._apply(page["items"]):
                told(self)
        return self.refresh()

    def _newest(self, told: Callable[[Plan], None]) -> int:
        """Read the plan again, and return the number of the newest event before that.

        Events are recorded from the first request for them on.
        """
        newest: int = self._events(limit=1, wait_s=0)["newest"]
        told(self.refresh())
        return newest

    def _events(self, **query: Any) -> Json:
        page: Json = self._client.ask("GET", "/events", params={"plan": self.uuid, **query}).json()
        return page

    def _apply(self, events: Iterable[Json]) -> bool:
        """Change the data as events tell; return whether any told of a new state."""
        actions = {action["uuid"]: action for action in self.actions}
        states = [event for event in events if event["type"].endswith(".state")]
        for event in states:
            of = actions[event["action"]] if "action" in event else self.data
            of |= {"state": event["data"]["state"], "status_message": event["data"]["message"]}
        return bool(states)

    def why(self, action: str) -> str:
        """Explain when an action starts, what it waits for, or why it did not run."""
        return "\n".join(self._get(f"/actions/{quote(action, safe='')}/why").json()["lines"])

    def output(self, action: str) -> str:
        """Return the output of the last attempt of an action, or the last 64 KiB of it."""
        return self._get(f"/actions/{quote(action, safe='')}/output").text

    def picture(self, kind: str = "graph") -> str:
        """Return the ``graph`` or the ``timeline`` of the plan, as SVG."""
        return self._get(f"/{kind}.svg").text

    def report(self, path: str | Path) -> Path:
        """Write the report of the plan, an HTML page, to a file; return its path."""
        target = Path(path)
        target.write_bytes(self._get("/report.html").content)
        return target

    def _repr_html_(self) -> str:
        has_begun = any(action["started_at"] for action in self.actions)
        drawn = self.picture("timeline" if has_begun else "graph")
        source = base64.b64encode(drawn.encode()).decode()
        head = f"{html.escape(self.data['name'] or self.uuid[:8])}: {self.state}"
        fields = ("name", "action_type", "state", "status_message")
        shown = (one for one in self.actions if one["action_type"] != "join")
        rows = ([one[field] for field in fields] for one in shown)
        table = _table(("action", "type", "state", "message"), rows)
        picture = f'<img alt="{head}" src="data:image/svg+xml;base64,{source}">'
        return f"<p><b>{head}</b></p>{picture}{table}"


def _print_progress(plan: Plan) -> None:
    states = [one["state"] for one in plan.actions if one["action_type"] != "join"]
    ended, run = sum(one not in ("PENDING", "ONGOING") for one in states), states.count("ONGOING")
    sys.stdout.write(f"{plan.state}: {ended} of {len(states)} actions have ended, {run} run\n")


def _table(heads: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return an HTML table."""

    def row(cells: Iterable[Any], tag: str) -> str:
        texts = (html.escape(str(cell or "")) for cell in cells)
        return f"<tr>{''.join(f'<{tag}>{text}</{tag}>' for text in texts)}</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return f"<table><thead>{row(heads, 'th')}</thead><tbody>{body}</tbody></table>"
