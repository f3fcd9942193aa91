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
  // A form that asks this server again needs it, too.
  document.addEventListener("formdata", (event) => { if (token) event.formData.set("token", token); });
  const keepTokens = () => document.querySelectorAll("a[href]").forEach(keepToken);

  function say(text, lost) {
    if (connection.textContent !== text) connection.textContent = text;
    connection.classList.toggle("lost", lost);
  }

  // Makes a node equal to a fresh one. Only differences are written, so that nothing scrolls, folds or
  // loses the focus.
  function morph(old, fresh) {
    // A button that has the focus must not become another one below the finger.
    const isOther = old.nodeName !== fresh.nodeName || ["do", "u", "state"].some((k) => old.dataset?.[k] !== fresh.dataset?.[k]);
    if (isOther || old.nodeType !== fresh.nodeType) {
      old.replaceWith(fresh);
    } else if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
    } else if (!old.isEqualNode(fresh)) {
      if (old.nodeName.toLowerCase() === "svg") {
        fresh.style.cssText = old.style.cssText;
        old.replaceWith(fresh);
        return;
      }
      attributes(old, fresh);
      const before = Array.from(old.childNodes), after = Array.from(fresh.childNodes);
      after.forEach((node, i) => (i < before.length ? morph(before[i], node) : old.append(node)));
      before.slice(after.length).forEach((node) => node.remove());
    }
  }

  function attributes(old, fresh) {
    const kept = { DETAILS: "open", TR: "hidden", BUTTON: "hidden", FORM: "hidden" }[old.nodeName];
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
      const wanted = Object.fromEntries(new URLSearchParams(location.search));
      const answer = await fetch(address("/plans", wanted), { headers: { Accept: "text/html", "If-None-Match": tag } });
      if (answer.status === 304) return;
      if (!answer.ok) throw new Error(String(answer.status));
      tag = answer.headers.get("ETag");
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      fresh.querySelectorAll("a[href]").forEach(keepToken);
      morph(document.querySelector("main"), fresh.querySelector("main"));
    });
    return;
  }

  // A plan.

  const base = `/v2/plans/${page.plan}`;
  const told = document.getElementById("told");
  document.body.classList.add("js");

  const refresh = polled(async () => {
    const found = await json(`/plans/${page.plan}/parts`, { version: page.version });
    const focused = document.activeElement;
    for (const [id, html] of Object.entries(found.parts)) {
      const old = document.getElementById(id);
      if (old) morph(old, element(html));
    }
    page.version = found.version;
    document.title = found.title;
    keepTokens();
    window.actionplanRefresh?.(false);
    // Whoever pressed a button that is not there any more goes on beside it.
    if (focused !== document.body && !focused.isConnected) told.focus();
  });

  // The requests of operators. The page has the buttons for the state; the server decides what is allowed.

  const dialog = document.getElementById("ask"), yes = document.getElementById("ask-yes");
  const why = document.getElementById("ask-why"), wrong = document.getElementById("ask-wrong");
  let asked = null;

  function key() {
    return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  function ask(button) {
    const label = button.textContent, { do: verb, why: reason = "may", state } = button.dataset;
    const place = button.closest("[data-u]");
    const about = place ? place.querySelector("th")?.textContent ?? place.firstChild.textContent : "the plan";
    asked = {
      label, reason, key: key(), body: state ? { state } : {},
      path: place ? `${base}/actions/${place.dataset.u}/${verb}` : `${base}/${verb}`,
    };
    document.getElementById("ask-title").textContent = state ? `${label}? ${about}` : `${label} ${about}?`;
    yes.textContent = label;
    yes.className = button.classList.contains("danger") ? "danger" : "primary";
    document.getElementById("ask-must").textContent = reason === "must" ? "(needed, for the record)" : "(for the record)";
    why.value = wrong.textContent = "";
    why.required = reason === "must";
    for (const one of [why, why.labels[0]]) one.hidden = reason === "none";
    dialog.showModal();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (button) ask(button);
  });
  document.getElementById("ask-no").addEventListener("click", () => dialog.close());
  dialog.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const { path, label, reason } = asked, text = why.value.trim();
    if (reason === "must" && !text) {
      wrong.textContent = "A reason is needed.";
      return;
    }
    yes.disabled = true;
    try {
      const answer = await fetch(address(path), {
        method: "POST",
        headers: { "Content-Type": "application/json", "Idempotency-Key": asked.key },
        body: JSON.stringify(text && reason !== "none" ? { why: text, ...asked.body } : asked.body),
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
          asked = { ...asked, key: key(), body: { ...asked.body, accept_drift: true } };
          yes.textContent = `${label} nevertheless`;
        }
      }
    } catch {
      wrong.textContent = "The server does not answer. Asking again is safe: nothing is done twice.";
    } finally {
      yes.disabled = false;
    }
  });

  keepTokens();
})();
