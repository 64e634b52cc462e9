// Live data: loads parts of a page again every few seconds, and shows when they are stale. Without this script "Reload" is a link.
"use strict";

(() => {
  /** Parts with an id that are loaded again: `data-refresh` is every how many seconds. */
  const parts = () => [...document.querySelectorAll("[data-refresh][id]")];
  const seconds = Math.min(...parts().map((part) => Number(part.dataset.refresh)));
  if (!Number.isFinite(seconds) || seconds <= 0) return;
  let isLoading = false;

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

  /** A part is not replaced while it has unsaved input, selected text, or something open or focused. */
  function isBusy(part) {
    const focused = document.activeElement;
    const isInForm = focused !== null && part.contains(focused) && focused.closest("form, details, dialog, summary");
    const isOpen = part.querySelector("details[open], dialog[open]") !== null;
    return Boolean(isInForm) || isOpen || hasUnsavedInput(part) || String(document.getSelection() ?? "") !== "";
  }

  function markStale(reason) {
    for (const live of document.querySelectorAll(".live")) live.classList.add("is-stale");
    for (const note of document.querySelectorAll("[data-refresh-note]")) note.textContent = ` (stale: ${reason})`;
  }

  function replace(part, fresh) {
    const focused = document.activeElement?.id ?? "";
    const scrolled = [...part.querySelectorAll(".wide")].map((place) => place.scrollLeft);
    // the outcome of an action is on no later page; moving it would make a screen reader read it again
    const old = [...part.childNodes].filter((child) => !child.dataset || !("toast" in child.dataset));
    for (const child of old) child.remove();
    part.append(...document.adoptNode(fresh).childNodes);
    part.querySelectorAll(".wide").forEach((place, at) => (place.scrollLeft = scrolled[at] ?? 0));
    if (focused !== "" && focused !== part.id) document.getElementById(focused)?.focus({ preventScroll: true });
  }

  async function refresh() {
    if (isLoading || document.hidden) return;
    if (parts().every(isBusy)) {
      if (parts().every(hasUnsavedInput)) markStale("not refreshed, since it has unsaved input");
      return;
    }
    isLoading = true;
    try {
      const response = await fetch(location.href, { headers: { "X-Refresh": "1" }, redirect: "manual" });
      if (response.type === "opaqueredirect" || [401, 403].includes(response.status)) return location.reload();
      if (!response.ok) return markStale(`the server returned ${response.status}; next try in ${seconds} s`);
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      for (const part of parts()) {
        const fresh = page.getElementById(part.id);
        if (fresh !== null && !isBusy(part)) replace(part, fresh);
      }
      document.dispatchEvent(new Event("refreshed"));
    } catch {
      markStale(`the server could not be reached; next try in ${seconds} s`);
    } finally {
      isLoading = false;
    }
  }

  setInterval(() => void refresh(), seconds * 1000);
  document.addEventListener("visibilitychange", () => void refresh());
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
