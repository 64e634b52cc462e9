// "/" moves to the search of the header, as on GitHub. Without this script it is reached with Tab.
"use strict";

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select") !== null) return;
  const box = document.getElementById("search");
  if (box === null || box.offsetParent === null) return;
  event.preventDefault();
  box.focus();
  box.select();
});
