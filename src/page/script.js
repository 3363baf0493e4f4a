// What a page does beyond its HTML: it renews itself when something has changed, and sends by Ctrl+Enter. Everything works
// without it.
"use strict";

(() => {
  const RETRY_MS = 5000;
  const FIELDS = "input:not([type=hidden]), textarea, select";
  const REACHED = "a, button, summary, input, textarea, select";
  const sections = () => [...document.querySelectorAll("[data-live]")];

  // A section where somebody types, or has typed, stays as it is.
  const isInUse = (section) =>
    [...section.querySelectorAll(FIELDS)].some((field) => field === document.activeElement ||
      (field.matches("[type=checkbox], [type=radio]") ? field.checked !== field.defaultChecked :
        field.tagName !== "SELECT" && field.value !== field.defaultValue));

  const isAtEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 40;

  // Puts what has changed in place, and leaves open what was opened, and the focus where it was.
  function renew(fresh) {
    for (const section of sections()) {
      const next = fresh.getElementById(section.id);
      if (!next || next.innerHTML === section.dataset.was || isInUse(section)) continue;
      const was = next.innerHTML;
      const named = (details) => details.querySelector("summary")?.textContent;
      const opened = new Set([...section.querySelectorAll("details[open]")].map(named));
      const focused = [...section.querySelectorAll(REACHED)].indexOf(document.activeElement);
      const followed = section.id === "live-chat" && isAtEnd();
      section.replaceChildren(...next.childNodes);
      section.dataset.was = was;
      for (const details of section.querySelectorAll("details")) {
        if (opened.has(named(details))) details.open = true;
      }
      if (focused >= 0) section.querySelectorAll(REACHED)[focused]?.focus({ preventScroll: true });
      if (followed) scrollTo(0, document.documentElement.scrollHeight);
    }
    tellSeen();
  }

  // What the assistant said counts as shown once it stands on a page that somebody looks at.
  function tellSeen() {
    const unseen = document.querySelector("[data-unseen]");
    if (!unseen || document.visibilityState !== "visible") return;
    const body = new URLSearchParams({ seen: unseen.value });
    unseen.remove();
    fetch("/chat/seen", { method: "POST", body, redirect: "manual" }).catch(() => {});
  }

  let isBusy = false;
  let isWanted = false;
  async function refresh() {
    isWanted = true;
    if (isBusy) return;
    isBusy = true;
    while (isWanted) {
      isWanted = false;
      try {
        const answer = await fetch(location.href, { cache: "no-store", redirect: "error" });
        if (answer.ok) renew(new DOMParser().parseFromString(await answer.text(), "text/html"));
      } catch {
        // The stream tells of a lost connection.
      }
    }
    isBusy = false;
  }

  let stream = null;
  let isLost = false;
  function listen() {
    if (stream || document.visibilityState !== "visible") return;
    stream = new EventSource(`/live?at=${encodeURIComponent(location.pathname)}`);
    const mine = stream;
    const connection = document.getElementById("connection");
    mine.onopen = () => {
      connection.hidden = true;
      if (isLost) refresh();
      isLost = false;
    };
    mine.addEventListener("changed", refresh);
    mine.onerror = () => {
      isLost = true;
      connection.hidden = false;
      if (mine.readyState !== EventSource.CLOSED || stream !== mine) return;
      stream = null;
      setTimeout(listen, RETRY_MS);
    };
  }

  function rest() {
    stream?.close();
    stream = null;
  }

  document.addEventListener("keydown", (event) => {
    const field = event.target;
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || !field.matches?.("textarea")) return;
    event.preventDefault();
    field.form?.requestSubmit();
  });

  if (sections().length === 0) return;
  for (const section of sections()) section.dataset.was = section.innerHTML;
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState !== "visible") return rest();
    isLost = true;
    listen();
    tellSeen();
  });
  // A chat begins at its end.
  if (document.getElementById("live-chat")) scrollTo(0, document.documentElement.scrollHeight);
  addEventListener("pagehide", rest);
  addEventListener("pageshow", (event) => event.persisted && listen());
  listen();
  tellSeen();
})();
