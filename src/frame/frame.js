// Two conveniences. Without them every page works: "Load again" is a link, and what can be copied can be selected.
"use strict";

// Loads the main part of a page again every few seconds.
(() => {
  const seconds = () => Number(document.getElementById("main")?.dataset.refresh ?? 0);
  if (seconds() === 0) return;
  let isAsking = false;

  /** Nobody's typing, choosing or reading aloud of a place is taken away. */
  function isBusy() {
    const main = document.getElementById("main");
    const at = document.activeElement;
    const isInForm = at !== null && main.contains(at) && at.closest("form, details, dialog, summary") !== null;
    const isOpen = main.querySelector("details[open], dialog[open]") !== null;
    const isSelecting = String(document.getSelection() ?? "") !== "";
    return document.hidden || isInForm || isOpen || isSelecting;
  }

  function note(text) {
    const place = document.querySelector("[data-refresh-note]");
    if (place !== null) place.textContent = text;
  }

  async function refresh() {
    if (isAsking || isBusy()) return;
    isAsking = true;
    try {
      const answer = await fetch(location.href, { headers: { "X-Refresh": "1" }, redirect: "manual" });
      if (answer.type === "opaqueredirect" || answer.status === 401 || answer.status === 403) return location.reload();
      if (!answer.ok) return note(` (not answered: ${answer.status}; asked again in ${seconds()} s)`);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const [old, fresh] = [document.getElementById("main"), page.getElementById("main")];
      if (fresh === null || isBusy()) return;
      const focused = document.activeElement?.id ?? "";
      const kept = [...old.querySelectorAll(".wide")].map((place) => place.scrollLeft);
      old.replaceChildren(...document.adoptNode(fresh).childNodes);
      document.dispatchEvent(new Event("refreshed"));
      old.querySelectorAll(".wide").forEach((place, at) => (place.scrollLeft = kept[at] ?? 0));
      if (focused !== "" && focused !== "main") document.getElementById(focused)?.focus({ preventScroll: true });
    } catch {
      note(` (not reached; asked again in ${seconds()} s)`);
    } finally {
      isAsking = false;
    }
  }

  setInterval(() => void refresh(), seconds() * 1000);
  document.addEventListener("visibilitychange", () => void refresh());
})();

// Copies what a field holds. Its button is hidden until this script runs.
(() => {
  async function copy(field, note) {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      note.textContent = "copied";
    } catch {
      note.textContent = "selected; copy it with Ctrl-C or your browser's menu";
    }
  }

  function offer() {
    for (const button of document.querySelectorAll("[data-copy]")) {
      const field = document.getElementById(button.dataset.copy);
      const note = document.querySelector(`[data-copied="${button.dataset.copy}"]`);
      if (field === null || note === null) continue;
      button.hidden = false;
      button.addEventListener("click", () => void copy(field, note));
    }
  }

  offer();
  document.addEventListener("refreshed", offer);
})();
