// Copy buttons. They are hidden until this script runs: without it the text can be selected.
"use strict";

(() => {
  async function copyField(field, note) {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      note.textContent = "copied";
    } catch {
      note.textContent = "selected; copy it with Ctrl-C or your browser's menu";
    }
  }

  async function copyCode(button) {
    const shown = [...button.parentElement.querySelectorAll("pre")].find((pre) => pre.checkVisibility());
    const label = button.querySelector("span");
    try {
      await navigator.clipboard.writeText(shown.textContent);
      label.textContent = "Copied";
    } catch {
      document.getSelection().selectAllChildren(shown);
      label.textContent = "Selected";
    }
    setTimeout(() => (label.textContent = "Copy"), 2000);
  }

  function offer() {
    for (const button of document.querySelectorAll("[data-copy]")) {
      const field = document.getElementById(button.dataset.copy);
      const note = document.querySelector(`[data-copied="${button.dataset.copy}"]`);
      if (field === null || note === null || !button.hidden) continue;
      button.hidden = false;
      button.addEventListener("click", () => void copyField(field, note));
    }
    for (const button of document.querySelectorAll("[data-copy-code]")) button.hidden = false;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy-code]");
    if (button !== null) void copyCode(button);
  });
  document.addEventListener("refreshed", offer);
  offer();
})();
