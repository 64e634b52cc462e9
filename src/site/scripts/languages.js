// One language for all code blocks, remembered in this browser. Without this script each block is switched on its own.
"use strict";

(() => {
  const NAME = "roundhouse-language";

  /** Some browsers refuse storage; then the choice lasts for this page. */
  function stored(value) {
    try {
      if (value === undefined) return localStorage.getItem(NAME);
      localStorage.setItem(NAME, value);
    } catch {
      return null;
    }
    return value;
  }

  function show(language) {
    for (const input of document.querySelectorAll(".languages input")) {
      if (input.value === language) input.checked = true;
    }
  }

  document.addEventListener("change", (event) => {
    if (!event.target.matches(".languages input")) return;
    const block = event.target.closest(".code");
    const before = block.getBoundingClientRect().top;
    show(event.target.value);
    stored(event.target.value);
    scrollBy(0, block.getBoundingClientRect().top - before); // blocks above changed their height
  });
  const before = stored();
  if (before !== null) show(before);
})();
