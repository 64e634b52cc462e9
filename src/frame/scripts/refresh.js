// Live data: loads parts of a page again every few seconds, and shows when they are stale. Without this script "Reload" is a link.
"use strict";

(() => {
  /** Parts with an id that are loaded again: `data-refresh` is every how many seconds. */
  const parts = () => [...document.querySelectorAll("[data-refresh][id]")];
  const seconds = Math.min(...parts().map((part) => Number(part.dataset.refresh)));
  if (!Number.isFinite(seconds) || seconds <= 0) return;
  let isLoading = false;
  let loadedAt = performance.now();
  // a page that is paused for longer shows no good verdict
  const LONGEST_PAUSE_MS = 60_000;
  const SLOW_MS = 10_000;
  /** The server responds within 25 s, if only with an error: later the connection is dead. */
  const LONGEST_MS = 30_000;

  /** Whether its user changed a control since it was loaded. */
  function isEdited(control) {
    if (control.type === "hidden") return false;
    if (control.type === "checkbox" || control.type === "radio") return control.checked !== control.defaultChecked;
    if (control.localName !== "select") return control.value !== control.defaultValue;
    const options = [...control.options];
    // without a selected option, a list of one line shows its first
    const isFirst = !control.multiple && !options.some((option) => option.defaultSelected);
    return options.some((option, at) => option.selected !== (isFirst ? at === 0 : option.defaultSelected));
  }

  function hasUnsavedInput(part) {
    return [...part.querySelectorAll("input, select, textarea")].some(isEdited);
  }

  /** Why a part must not be replaced now; null if it may be. */
  function pauseReason(part) {
    const focused = document.activeElement;
    if (hasUnsavedInput(part)) return "a form has unsaved input";
    if (part.querySelector("dialog[open]") !== null) return "a dialog is open";
    if (String(document.getSelection() ?? "") !== "") return "text is selected";
    if (focused !== null && part.contains(focused) && focused.closest("form, dialog")) return "a form is in use";
    return null;
  }

  function note(text) {
    for (const live of document.querySelectorAll(".live, .fresh")) live.classList.add("is-stale");
    for (const word of document.querySelectorAll("[data-live]")) word.textContent = "Not live, updated";
    for (const place of document.querySelectorAll("[data-refresh-note]")) place.textContent = ` (${text})`;
  }

  /** After a failed load a good verdict on the page is unknown. */
  function markStale(reason) {
    note(`stale: ${reason}`);
    for (const fresh of document.querySelectorAll(".fresh")) fresh.classList.add("warn");
    for (const verdict of document.querySelectorAll(".verdict-bar.good, [data-verdict].good")) {
      const time = verdict.querySelector("time[data-age]") ?? document.querySelector(".fresh time[data-age]");
      verdict.classList.replace("good", "warn");
      verdict.querySelector("strong").textContent = time === null ? "Unknown now." : `Unknown since ${time.title}.`;
    }
  }

  /** The elements of a kind by a name that is the same in the next load; equal names are numbered. */
  function byName(part, kind) {
    const found = new Map();
    const counts = new Map();
    for (const element of part.querySelectorAll(kind)) {
      const text = (element.querySelector("summary") ?? element).textContent.trim();
      const { dataset, id } = element;
      const key = dataset.key || (kind === "summary" && element.parentElement.dataset.key);
      const name = key || id || element.getAttribute("aria-label") || element.getAttribute("href") || text;
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      found.set(`${count} ${name}`, element);
    }
    return found;
  }

  /** Replaces the content of a part; what is open, focused or scrolled stays so. */
  function replace(part, fresh) {
    const focused = document.activeElement;
    const kind = focused !== null && part.contains(focused) ? focused.localName : null;
    const focus = kind && [...byName(part, kind)].find(([, element]) => element === focused)?.[0];
    const wasOpen = [...byName(part, "details")].map(([name, { open }]) => ({ name, open }));
    const scrolled = [...part.querySelectorAll(".wide")].map((place) => place.scrollLeft);
    // the outcome of an action is on no later page; moving it would make a screen reader read it again
    const old = [...part.childNodes].filter((child) => !child.dataset || !("toast" in child.dataset));
    for (const child of old) child.remove();
    part.append(...document.adoptNode(fresh).childNodes);
    const details = byName(part, "details");
    for (const { name, open } of wasOpen) if (details.has(name)) details.get(name).open = open;
    part.querySelectorAll(".wide").forEach((place, at) => (place.scrollLeft = scrolled[at] ?? 0));
    if (focus) byName(part, kind).get(focus)?.focus({ preventScroll: true });
  }

  async function refresh() {
    if (isLoading || document.hidden) return;
    const reasons = parts().map(pauseReason);
    if (!reasons.includes(null)) {
      const show = performance.now() - loadedAt > LONGEST_PAUSE_MS ? markStale : note;
      return show(`paused while ${reasons[0]}`);
    }
    isLoading = true;
    const slow = setTimeout(() => markStale(`the server has not responded for ${SLOW_MS / 1000} s`), SLOW_MS);
    try {
      const signal = AbortSignal.timeout(LONGEST_MS);
      const response = await fetch(location.href, { headers: { "X-Refresh": "1" }, redirect: "manual", signal });
      if (response.type === "opaqueredirect" || [401, 403].includes(response.status)) return location.reload();
      if (!response.ok) return markStale(`the server returned ${response.status}; next try in ${seconds} s`);
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      for (const part of parts()) {
        if (pauseReason(part) !== null) continue;
        const fresh = page.getElementById(part.id);
        if (fresh !== null) replace(part, fresh);
        else if (pauseReason(document.body) === null)
          return location.reload(); // the page has another form now
        else note("a part of it has ended; reload the page");
      }
      loadedAt = performance.now();
      document.dispatchEvent(new Event("refreshed"));
    } catch {
      markStale(`the server could not be reached; next try in ${seconds} s`);
    } finally {
      clearTimeout(slow);
      isLoading = false;
    }
  }

  setInterval(() => void refresh(), seconds * 1000);
  document.addEventListener("visibilitychange", () => void refresh());
})();

// A heat map that is wider than its place shows its newest hours.
(() => {
  for (const map of document.querySelectorAll(".wide .heat .hours")) {
    const place = map.closest(".wide");
    place.scrollLeft += map.getBoundingClientRect().right - place.getBoundingClientRect().right;
  }
})();

// Relative times tick: "5 s ago" becomes "6 s ago". Their absolute time is the title.
(() => {
  const UNITS = [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];

  /** The two largest units, as the server writes them. */
  function duration(seconds) {
    let left = Math.max(0, Math.floor(seconds));
    const counts = UNITS.map(([unit, size]) => {
      const count = Math.floor(left / size);
      left -= count * size;
      return { unit, count };
    });
    const first = counts.findIndex(({ count }) => count > 0);
    if (first === -1) return "0 s";
    const shown = counts.slice(first, first + 2).filter(({ count }) => count > 0);
    return shown.map(({ unit, count }) => `${count} ${unit}`).join(" ");
  }

  /** The server's clock is the reference: a time was so old when the page was loaded. */
  function tick() {
    if (document.hidden) return;
    for (const time of document.querySelectorAll("time[data-age]")) {
      time.loadedAt ??= performance.now();
      const age = Number(time.dataset.age) + (performance.now() - time.loadedAt) / 1000;
      time.textContent = age <= -1 ? `in ${duration(-age)}` : `${duration(age)} ago`;
    }
  }

  setInterval(tick, 1000);
  document.addEventListener("refreshed", tick);
  tick();
})();
