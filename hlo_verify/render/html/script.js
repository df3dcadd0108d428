"use strict";
// The page is whole without this: it adds search in long lists, opens what a link leads to, and opens findings for paper.
(() => {
  const searches = [];
  for (const list of document.querySelectorAll("[data-search]")) {
    const rows = [...(list.tBodies ? list.tBodies[0].rows : list.children)];
    if (rows.length < 8) continue;
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const box = document.createElement("div");
    const input = document.createElement("input");
    const said = document.createElement("span");
    box.className = "search";
    box.setAttribute("role", "search");
    input.type = "search";
    input.placeholder = `Search ${list.dataset.search} ( / )`;
    input.setAttribute("aria-label", `Search ${list.dataset.search}`);
    said.setAttribute("role", "status");
    box.append(input, said);
    (list.closest(".scrolls") || list).before(box);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, number) => {
        row.hidden = !words.every((word) => texts[number].includes(word));
        shown += row.hidden ? 0 : 1;
      });
      said.textContent = words.length ? `${shown} of ${rows.length}` : "";
    });
    searches.push(input);
  }

  // `/` goes to the first search that is below the top of what is seen, or else to the last; Escape empties and leaves it.
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "Escape" && typing && searches.includes(typing)) {
      typing.value = "";
      typing.dispatchEvent(new Event("input"));
      typing.blur();
    }
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const seen = searches.filter((input) => (input.checkVisibility ? input.checkVisibility() : input.offsetParent));
    const next = seen.find((input) => input.getBoundingClientRect().top >= 0) || seen.at(-1) || searches[0];
    if (!next) return;
    event.preventDefault();
    for (let at = next.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    next.focus();
  });

  const reveal = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    if (!target) return;
    const inside = target.matches("details") ? target : target.querySelector(":scope > details");
    for (let at = inside || target.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
  };
  addEventListener("hashchange", reveal);
  reveal();

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.module:not([open]), .finding > details:not(.explained):not([open])")];
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
  });

  for (const block of document.querySelectorAll("pre.command")) {
    if (!navigator.clipboard) break;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.innerText);
      button.textContent = "Copied";
    });
    block.after(button);
  }
})();
