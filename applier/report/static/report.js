// SPDX-License-Identifier: Apache-2.0
// Filters and sorts the table of actions, and copies texts. The report can be read without it.
"use strict";
(() => {
  const table = document.getElementById("rows");
  const form = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const STATE = 4, TYPE = 2, FIRST = 200;
  const root = document.documentElement, later = document.getElementById("later");
  if (!table || !form) return;

  const body = table.tBodies[0];
  const rows = () => Array.from(body.rows);
  const state = (row) => row.querySelector(".badge").classList[1];
  const type = (row) => row.cells[TYPE].textContent.trim();

  // The style sheet hides what follows the FIRST rows until somebody asks for them.
  function showAll() {
    root.classList.add("all-rows");
    filter();
  }

  // Fills a select element with the existing values, and keeps the chosen value.
  function offer(select, values) {
    const chosen = select.value;
    const known = new Set(values);
    if (chosen) known.add(chosen);
    const names = Array.from(known).sort();
    if (names.join() === select.dataset.names) return;
    select.dataset.names = names.join();
    select.replaceChildren(new Option("all", ""), ...names.map((value) => new Option(value, value)));
    select.value = chosen;
  }

  function filter() {
    const text = form.elements.text.value.trim().toLowerCase();
    const wantedState = form.elements.state.value, wantedType = form.elements.type.value;
    let number = 0;
    const all = rows();
    for (const row of all) {
      const fits = (!wantedState || state(row) === wantedState)
        && (!wantedType || type(row) === wantedType)
        && (!text || row.textContent.toLowerCase().includes(text));
      if (row.hidden === fits) row.hidden = !fits;
      number += fits;
    }
    const isCut = number > FIRST && later && getComputedStyle(later).display !== "none";
    const said = `${isCut ? `the first ${FIRST}` : number} of ${all.length} actions`;
    if (shown.textContent !== said) shown.textContent = said;
  }

  function value(row, column, kind) {
    const cell = row.cells[column];
    const text = cell.dataset.v ?? cell.textContent.trim();
    if (kind === "text") return text.toLowerCase();
    const number = parseFloat(text);
    return Number.isNaN(number) ? Infinity : number;
  }

  function order() {
    const head = table.tHead.querySelector("th[aria-sort]");
    const column = head ? head.cellIndex : 0;
    const kind = head ? head.dataset.sort : "number";
    const sign = head && head.getAttribute("aria-sort") === "descending" ? -1 : 1;
    const keyed = rows().map((row) => [value(row, column, kind), parseInt(row.id.slice(1), 10), row]);
    keyed.sort(([a, i], [b, j]) => (a < b ? -sign : a > b ? sign : i - j));
    if (keyed.some(([, , row], i) => body.rows[i] !== row)) {
      body.append(...keyed.map(([, , row]) => row));
    }
  }

  for (const head of table.tHead.querySelectorAll("th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      for (const other of table.tHead.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", now);
      order();
    });
    head.replaceChildren(button);
  }

  function refresh(sorts = true) {
    offer(form.elements.state, rows().map(state));
    offer(form.elements.type, rows().map(type));
    if (sorts) order();
    filter();
  }

  form.addEventListener("input", showAll);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  refresh();
  // live.js calls this with false when it has changed rows: they are not sorted, so that none moves.
  window.actionplanRefresh = refresh;

  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    const label = button.textContent;
    button.addEventListener("click", async () => {
      const text = button.parentElement.querySelector("pre");
      try {
        await navigator.clipboard.writeText(text.textContent);
      } catch {
        getSelection().selectAllChildren(text);
        document.execCommand("copy");
      }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = label; }, 2000);
    });
  }

  // Pictures: a click on an action opens its row, one on several actions of a folded lane the lanes below; the
  // wheel with Ctrl and the buttons zoom, dragging moves.
  const FAR = 4;
  let pressed = null, isDragged = false;

  // Shows the row of an action, even if the filter hides it.
  function open(row) {
    if (row.hidden) form.reset();
    showAll();
    row.querySelector("details").open = true;
    location.hash = row.id;
    row.scrollIntoView({ block: "center" });
  }

  function zoom(place, by, x = place.clientWidth / 2, y = place.clientHeight / 2) {
    const svg = place.querySelector("svg"), { width, height } = svg.getBoundingClientRect();
    svg.style.width = by ? `${width * by}px` : "";
    svg.style.height = by ? `${height * by}px` : "";
    svg.style.minWidth = svg.style.maxWidth = by ? "none" : "";
    const grown = svg.getBoundingClientRect().width / width;
    place.scrollLeft = (place.scrollLeft + x) * grown - x;
    place.scrollTop = (place.scrollTop + y) * grown - y;
  }

  // An address with the number of an action, also one that is typed later.
  function follow() {
    const row = /^#r\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
    if (row) open(row);
  }
  addEventListener("hashchange", follow);
  follow();

  root.classList.add("scripted");
  document.addEventListener("click", (event) => {
    const shape = event.target.closest(".drawn [data-r]"), link = event.target.closest('a[href^="#r"]');
    if (event.target.closest("#later")) showAll();
    const by = event.target.dataset.zoom;
    if (by) zoom(event.target.parentElement.nextElementSibling, Number(by));
    if (shape && isDragged) return;
    const lanes = shape?.matches(".several") && shape.closest("section")?.querySelector("details");
    if (lanes && !lanes.contains(shape)) {
      lanes.open = true;
      (lanes.querySelector(`[data-r="${shape.dataset.r}"]`) ?? lanes).scrollIntoView({ block: "center" });
      return;
    }
    const row = document.getElementById(shape ? `r${shape.dataset.r}` : link?.hash.slice(1));
    if (!row) return;
    event.preventDefault();
    open(row);
  });
  document.addEventListener("wheel", (event) => {
    const place = event.ctrlKey && event.target.closest(".wide");
    if (!place) return;
    event.preventDefault();
    const { left, top } = place.getBoundingClientRect();
    zoom(place, event.deltaY < 0 ? 1.25 : 0.8, event.clientX - left, event.clientY - top);
  }, { passive: false });
  document.addEventListener("pointerdown", (event) => {
    pressed = event;
    isDragged = false;
  });
  document.addEventListener("pointermove", (event) => {
    if (event.buttons !== 1 || event.pointerType !== "mouse" || !pressed) return;
    isDragged ||= Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) > FAR;
    if (isDragged) pressed.target.closest?.(".wide")?.scrollBy(-event.movementX, -event.movementY);
  });

  // Before printing, the rows of failed actions are unfolded.
  addEventListener("beforeprint", () => {
    for (const row of rows()) {
      if (/FAILED|UNKNOWN/.test(state(row))) row.querySelector("details").open = true;
    }
  });
})();
