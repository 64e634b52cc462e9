// "Try it": calls an endpoint from the page. The key is kept in this tab only, and sent to this server alone.
"use strict";

(() => {
  const NAME = "roundhouse-key";
  const forms = document.querySelectorAll("form[data-try]");

  function stored(value) {
    try {
      if (value !== undefined) sessionStorage.setItem(NAME, value);
      return sessionStorage.getItem(NAME) ?? "";
    } catch {
      return value ?? "";
    }
  }

  async function send(form) {
    const output = form.querySelector("output");
    const key = form.elements.key.value.trim();
    for (const other of forms) other.elements.key.value = key;
    stored(key);
    output.textContent = "Sending…";
    try {
      const begun = performance.now();
      const response = await fetch(form.dataset.try + form.elements.query.value, { headers: { "X-Api-Key": key } });
      const text = await response.text();
      const took = Math.round(performance.now() - begun);
      output.textContent = `${response.status} in ${took} ms\n${pretty(text)}`;
    } catch {
      output.textContent = "The server could not be reached. Try again.";
    }
  }

  function pretty(text) {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  }

  for (const form of forms) {
    form.hidden = false;
    form.elements.key.value = stored();
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void send(form);
    });
  }
})();
