// The list of settings while somebody types what to look for. Without this, the button does the same.
"use strict";

(() => {
  const field = document.querySelector("[data-filter]");
  const count = document.getElementById("set-count");
  if (!field || !count) return;
  const rows = [...document.querySelectorAll(".set-group li")].map((row) => [row, row.textContent.toLowerCase()]);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const [row, text] of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) found += 1;
    }
    for (const group of document.querySelectorAll(".set-group")) {
      group.hidden = !group.querySelector("li:not([hidden])");
    }
    count.textContent = found === 1 ? "1 setting" : `${found} settings`;
  });
})();
