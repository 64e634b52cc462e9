// Dialogs and toasts. Without this script the opener of a dialog is a link or a button of its own, and a toast stays.
"use strict";

(() => {
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-opens]");
    const dialog = opener === null ? null : document.getElementById(opener.dataset.opens);
    if (dialog === null) return;
    event.preventDefault();
    dialog.showModal();
  });

  for (const toast of document.querySelectorAll("[data-toast]")) {
    const close = document.createElement("button");
    close.type = "button";
    close.className = "quiet small";
    close.textContent = "Dismiss";
    close.addEventListener("click", () => toast.remove());
    toast.append(close);
  }
})();
