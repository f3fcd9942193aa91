// SPDX-License-Identifier: Apache-2.0
// Asks once a second what has changed on the page, and sends the requests of operators to the API.
"use strict";
(() => {
  const page = document.body.dataset;
  const token = new URLSearchParams(location.search).get("token");
  const connection = document.getElementById("connection");
  const PAUSE_MS = 1000, HIDDEN_MS = 10000;

  // Returns an address of this server with query values, and with the token of this page, if any.
  function address(path, values = {}) {
    const query = new URLSearchParams(values);
    if (token) query.set("token", token);
    const text = query.toString();
    return text ? `${path}?${text}` : path;
  }

  function keepToken(link) {
    const path = link.getAttribute("href");
    if (token && path.startsWith("/") && !path.includes("token=")) link.setAttribute("href", address(path));
  }
  const keepTokens = () => document.querySelectorAll("a[href]").forEach(keepToken);

  function say(text, lost) {
    if (connection.textContent !== text) connection.textContent = text;
    connection.classList.toggle("lost", lost);
  }

  // Makes a node equal to a fresh one. Only differences are written, so that nothing scrolls, folds or
  // loses the focus.
  function morph(old, fresh) {
    if (old.nodeName !== fresh.nodeName || old.nodeType !== fresh.nodeType) {
      old.replaceWith(fresh);
    } else if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
    } else if (!old.isEqualNode(fresh)) {
      if (old.nodeName.toLowerCase() === "svg") {
        old.replaceWith(fresh);
        return;
      }
      attributes(old, fresh);
      const before = Array.from(old.childNodes).filter((node) => !node.dataset?.own);
      const after = Array.from(fresh.childNodes);
      after.forEach((node, i) => (i < before.length ? morph(before[i], node) : old.append(node)));
      before.slice(after.length).forEach((node) => node.remove());
    }
  }

  function attributes(old, fresh) {
    const kept = { DETAILS: "open", TR: "hidden", BUTTON: "hidden" }[old.nodeName];
    for (const { name, value } of fresh.attributes) {
      if (name !== kept && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    for (const { name } of Array.from(old.attributes)) {
      if (name !== kept && !fresh.hasAttribute(name)) old.removeAttribute(name);
    }
  }

  function element(html) {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content.firstElementChild;
  }

  // Calls read() again and again, and returns a function that calls it as soon as possible. Calls do not
  // overlap; the pause between two grows with the time that the last one took, and while nobody looks.
  function polled(read) {
    let timer = null, busy = false, again = false;
    async function run() {
      clearTimeout(timer);
      busy = true;
      again = false;
      const began = performance.now();
      try {
        await read();
        say("live", false);
      } catch {
        say("the connection is cut; what you see may be old", true);
      }
      busy = false;
      const took = performance.now() - began;
      timer = setTimeout(run, again ? 0 : Math.max(document.hidden ? HIDDEN_MS : PAUSE_MS, 2 * took));
    }
    function ask() {
      if (busy) again = true;
      else run();
    }
    document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
    timer = setTimeout(run, PAUSE_MS);
    return ask;
  }

  async function json(path, values) {
    const answer = await fetch(address(path, values), { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  }

  // The list of plans.

  if (!page.plan) {
    let tag = "";
    keepTokens();
    polled(async () => {
      const answer = await fetch(address("/plans"), { headers: { Accept: "text/html", "If-None-Match": tag } });
      if (answer.status === 304) return;
      if (!answer.ok) throw new Error(String(answer.status));
      tag = answer.headers.get("ETag");
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      fresh.querySelectorAll("a[href]").forEach(keepToken);
      morph(document.getElementById("plans"), fresh.getElementById("plans"));
    });
    return;
  }

  // A plan.

  const base = `/v2/plans/${page.plan}`;
  const may = new Set(page.may.split(" "));
  const told = document.getElementById("told");
  const planState = () => document.querySelector("#top .badge").classList[1];
  const rowState = (row) => row.querySelector(".badge").classList[1];

  const refresh = polled(async () => {
    const found = await json(`/plans/${page.plan}/parts`, { version: page.version });
    for (const [id, html] of Object.entries(found.parts)) {
      const old = document.getElementById(id);
      if (old) morph(old, element(html));
    }
    page.version = found.version;
    document.title = found.title;
    keepTokens();
    window.actionplanRefresh?.(false);
    buttons();
    offerAll();
  });

  // The requests of operators. The server decides what is allowed; these states only decide which
  // buttons are shown.

  const CHANGES = {
    approve: { label: "Approve", rule: "plan:approve", states: ["RECOMMENDED", "PAUSED", "FAILED", "CANCELLED"], must: true },
    start: { label: "Start", rule: "plan:run", states: ["RECOMMENDED"], reasonless: true },
    pause: { label: "Pause", rule: "plan:run", states: ["ONGOING"] },
    resume: { label: "Resume", rule: "plan:run", states: ["PAUSED", "FAILED", "CANCELLED"] },
    cancel: { label: "Cancel", rule: "plan:run", states: ["PENDING", "ONGOING", "PAUSED"] },
  };
  const ACTION_CHANGES = {
    skip: { label: "Skip", states: ["PENDING"], must: true },
    abort: { label: "Abort", states: ["ONGOING"] },
  };

  function button(label, onClick) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = label;
    made.addEventListener("click", onClick);
    return made;
  }

  function buttons() {
    const state = planState(), place = document.getElementById("buttons");
    const wanted = Object.entries(CHANGES).filter(([, change]) => may.has(change.rule) && change.states.includes(state));
    const names = wanted.map(([name]) => name).join(" ");
    if (place.dataset.names === names) return;
    place.dataset.names = names;
    place.replaceChildren(...wanted.map(([name, change]) =>
      button(`${change.label} …`, () => ask(change, `${change.label} the plan?`, `${base}/${name}`))));
  }

  // Adds the buttons for the state of an action to its unfolded row, and replaces them when the state
  // changes.
  function offer(details) {
    const row = details.closest("tr"), own = details.querySelector("[data-own]"), state = rowState(row);
    if (own?.dataset.own === state) return;
    own?.remove();
    const offered = Object.entries(ACTION_CHANGES).filter(([, change]) => change.states.includes(state));
    if (!offered.length) return;
    const place = document.createElement("p");
    place.dataset.own = state;
    place.append(...offered.map(([name, change]) => button(`${change.label} …`, () =>
      ask(change, `${change.label} ${row.cells[1].textContent}?`, `${base}/actions/${row.dataset.u}/${name}`))));
    details.append(place);
  }

  const offerAll = () => {
    if (may.has("action:steer")) document.querySelectorAll("#rows details[open]").forEach(offer);
  };
  document.getElementById("rows").addEventListener("toggle", offerAll, true);

  const dialog = document.getElementById("ask");
  const why = document.getElementById("ask-why"), wrong = document.getElementById("ask-wrong");
  let asked = null;

  function key() {
    return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  function ask(change, title, path) {
    asked = { change, path, key: key(), accepted: {} };
    document.getElementById("ask-title").textContent = title;
    document.getElementById("ask-yes").textContent = change.label;
    document.getElementById("ask-must").textContent = change.must ? "(needed, for the record)" : "(for the record)";
    why.value = wrong.textContent = "";
    why.required = Boolean(change.must);
    why.closest("p").hidden = Boolean(change.reasonless);
    dialog.showModal();
  }

  document.getElementById("ask-no").addEventListener("click", () => dialog.close());
  dialog.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const { change, path } = asked, text = why.value.trim();
    if (change.must && !text) {
      wrong.textContent = "A reason is needed.";
      return;
    }
    const yes = document.getElementById("ask-yes");
    yes.disabled = true;
    try {
      const answer = await fetch(address(path), {
        method: "POST",
        headers: { "Content-Type": "application/json", "Idempotency-Key": asked.key },
        body: JSON.stringify(text && !change.reasonless ? { why: text, ...asked.accepted } : asked.accepted),
      });
      const value = await answer.json();
      if (answer.ok) {
        dialog.close();
        told.textContent = value.messages.join(" ") || `The plan is ${value.state}.`;
        refresh();
      } else {
        wrong.textContent = value.detail ?? value.title ?? `refused: ${answer.status}`;
        if (value.differences) {
          // The next click sends another request: that the cloud may differ as it says above.
          wrong.textContent = `The cloud is not as planned: ${value.differences.map((one) => one.detail).join("; ")}.`;
          asked = { ...asked, key: key(), accepted: { accept_drift: true } };
          yes.textContent = `${change.label} nevertheless`;
        }
      }
    } catch {
      wrong.textContent = "The server does not answer. Asking again is safe: nothing is done twice.";
    } finally {
      yes.disabled = false;
    }
  });

  keepTokens();
  buttons();
})();
