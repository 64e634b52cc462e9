// Step-up: before a form is sent, asks the server whether its action requires the password again. If so, a dialog asks for it
// and sends the form afterwards. Without this script the server responds to the form with a page that does the same.
"use strict";

(() => {
  const url = document.body.dataset.stepUp;
  if (url === undefined) return;
  const checked = new WeakSet(); // forms whose next submission is sent
  const asking = new WeakSet();

  document.addEventListener("submit", (event) => {
    const { target: form, submitter } = event;
    const isPost = form.getAttribute("method")?.toLowerCase() === "post";
    const isOwn = form.matches("[data-proof]") || form.closest("dialog[data-step-up]") !== null;
    if (event.defaultPrevented || !isPost || isOwn || checked.delete(form)) return;
    event.preventDefault();
    if (!asking.has(form)) void ask(form, submitter);
  });

  async function ask(form, submitter) {
    asking.add(form);
    const action = submitter?.getAttribute("formAction") ?? form.getAttribute("action") ?? "";
    const path = new URL(action, location.href).pathname;
    const send = () => {
      checked.add(form);
      form.requestSubmit(submitter);
    };
    try {
      const headers = { "X-Refresh": "1" }; // leaves the outcome of the last action for the next page
      const response = await fetch(`${url}?for=${encodeURIComponent(path)}`, { headers, redirect: "manual" });
      const page = response.status === 200 ? await response.text() : "";
      const isOpen = page !== "" && open(page, { form, name: submitter?.textContent.trim() ?? "", send });
      if (!isOpen) send();
    } catch {
      send(); // the server then responds with the page
    } finally {
      asking.delete(form);
    }
  }

  /** Shows what the page asks for in a dialog. False if the page asks for nothing. */
  function open(text, { form, name, send }) {
    const dialog = document.createElement("dialog");
    dialog.dataset.stepUp = "";
    if (!fill(dialog, text, name)) return false;
    form.after(dialog); // within a part that is loaded again, so that it is not replaced meanwhile
    dialog.addEventListener("close", () => dialog.remove());
    dialog.addEventListener("click", (event) => {
      if (event.target.closest("[data-cancel]") === null) return;
      event.preventDefault();
      dialog.close();
    });
    dialog.addEventListener("submit", (event) => {
      if (!event.target.matches("[data-proof]")) return;
      event.preventDefault();
      void prove(event.target, { dialog, name, send });
    });
    dialog.showModal();
    return true;
  }

  async function prove(proof, { dialog, name, send }) {
    const button = proof.querySelector("button");
    button.disabled = true;
    const isPassed = await check(proof, { dialog, name });
    button.disabled = false;
    if (!isPassed) return;
    dialog.close();
    send();
  }

  /** Sends the password. True if the form may be sent now; also if the server asks for something else, which it then shows. */
  async function check(proof, { dialog, name }) {
    try {
      const body = new URLSearchParams(new FormData(proof));
      const response = await fetch(proof.getAttribute("action"), { method: "POST", body, redirect: "manual" });
      if (response.type === "opaqueredirect") return true;
      const isAsking = fill(dialog, await response.text(), name);
      if (isAsking) dialog.querySelector("input:not([type=hidden])")?.focus();
      return !isAsking;
    } catch {
      const note = document.createElement("p");
      note.className = "problem";
      note.setAttribute("role", "alert");
      note.textContent = "The server could not be reached. Try again.";
      proof.before(note);
      return false;
    }
  }

  function fill(dialog, text, name) {
    const page = new DOMParser().parseFromString(text, "text/html");
    const content = page.querySelector("[data-step-up-content]");
    if (content === null) return false;
    const heading = document.createElement("h2");
    heading.id = "step-up-title";
    heading.textContent = page.querySelector("h1").textContent;
    dialog.setAttribute("aria-labelledby", heading.id);
    const action = content.querySelector("[data-action-name]");
    if (action !== null && name !== "") action.textContent = name;
    dialog.replaceChildren(heading, ...document.adoptNode(content).childNodes);
    return true;
  }
})();
