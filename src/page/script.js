// What a page does beyond its HTML: it renews itself when something has changed, shows an answer while it is written, and
// sends by Enter. Everything works without it.
"use strict";

(() => {
  const RETRY_MS = 5000;
  const SETTLING_MS = 800;
  const FIELDS = "input:not([type=hidden]), textarea, select";
  const REACHED = "a, button, summary, input, textarea, select, [tabindex]";
  const sections = () => [...document.querySelectorAll("[data-live]")];

  // A section where somebody types, or has typed, stays as it is. What was just sent no longer counts.
  const isInUse = (section, sent) =>
    [...section.querySelectorAll(FIELDS)].some((field) => field.form !== sent && (field === document.activeElement ||
      (field.matches("[type=checkbox], [type=radio]") ? field.checked !== field.defaultChecked :
        field.tagName !== "SELECT" && field.value !== field.defaultValue)));

  const isAtEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 40;

  // A button that stood somewhere else a moment ago, or was just renewed, decides nothing yet: a second click or an Enter was meant for what was
  // there. A stop always counts, since it harms nothing.
  const ORDERS = "form button";
  const place = (button) => {
    const { top, left } = button.getBoundingClientRect();
    return [identity(button), Math.round(top), Math.round(left)].join();
  };
  const places = () => new Set([...document.querySelectorAll(ORDERS)].map(place));
  function mark(button) {
    const now = String(performance.now());
    button.dataset.moved = now;
    setTimeout(() => button.dataset.moved === now && delete button.dataset.moved, SETTLING_MS);
  }
  function settle(before = new Set()) {
    for (const button of document.querySelectorAll(ORDERS)) {
      if (!before.has(place(button))) mark(button);
    }
  }
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const button = event.submitter ?? form.querySelector("button");
    if (form.querySelector(FIELDS) || form.querySelector("[name=text]")?.value === "/stop") return;
    if (button?.dataset.moved) event.preventDefault();
  });

  // What a control does, and to what: the same place may hold another one's after a renewal.
  function identity(control) {
    const sent = [...(control.form?.querySelectorAll("input[type=hidden]") ?? [])].map((field) => [field.name, field.value]);
    const of = (name) => control.getAttribute(name);
    return JSON.stringify([control.tagName, of("id"), of("name"), of("href"), of("aria-label"), control.textContent,
      control.form?.getAttribute("action"), sent]);
  }

  // Gives the focus back to what had it, or to the section's beginning if that has gone.
  function refocus(section, was) {
    const same = [...section.querySelectorAll(REACHED)].find((control) => identity(control) === was);
    const next = same ?? section.querySelector("h2, h3") ?? section;
    if (!same) next.tabIndex = -1;
    next.focus({ preventScroll: true });
  }

  // Puts what has changed in place, and leaves open what was opened, and the focus on what had it.
  function renew(fresh, sent) {
    const before = places();
    for (const section of sections()) {
      const next = fresh.getElementById(section.id);
      if (!next || next.innerHTML === section.dataset.was || isInUse(section, sent)) continue;
      const was = next.innerHTML;
      const named = (details) => details.querySelector("summary")?.textContent;
      const opened = new Set([...section.querySelectorAll("details[open]")].map(named));
      const focused = section.contains(document.activeElement) ? identity(document.activeElement) : null;
      const followed = section.id === "live-chat" && isAtEnd();
      section.replaceChildren(...next.childNodes);
      section.dataset.was = was;
      for (const button of section.querySelectorAll(ORDERS)) mark(button);
      for (const details of section.querySelectorAll("details")) {
        if (opened.has(named(details))) details.open = true;
      }
      if (focused !== null) refocus(section, focused);
      if (section.id === "live-chat") hidePreview();
      if (followed) scrollTo(0, document.documentElement.scrollHeight);
    }
    settle(before);
    tellSeen();
  }

  // What the assistant said counts as shown once it stands on a page that somebody looks at.
  // Whoever comes to the chat, or back to it, waits for answers there again.
  function tellSeen(hasCome = false) {
    const unseen = document.querySelector("[data-unseen]");
    const isToTell = unseen || (hasCome && document.getElementById("live-chat"));
    if (!isToTell || document.visibilityState !== "visible") return;
    const body = new URLSearchParams({ seen: unseen?.value ?? "" });
    const told = fetch("/chat/seen", { method: "POST", body, redirect: "error" });
    // What couldn't be told is told with the next renewal.
    told.then((answer) => answer.ok && unseen?.remove()).catch(() => {});
  }

  // The answer while it is written. Its end leaves it until the answer itself is here, which takes a moment.
  const preview = document.getElementById("preview");
  const LINGER_MS = 3000;
  let isOver = false;
  function hidePreview() {
    if (!preview || !isOver) return;
    preview.hidden = true;
    preview.replaceChildren();
  }
  function showPreview(event) {
    if (!preview) return;
    isOver = event.data === "";
    if (isOver) return void setTimeout(hidePreview, LINGER_MS);
    const followed = isAtEnd();
    preview.innerHTML = event.data;
    preview.hidden = false;
    if (followed) scrollTo(0, document.documentElement.scrollHeight);
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
        // The navigation is on every view, and renewed with what the view shows.
        const shown = sections().find((section) => section.closest("main"));
        const address = shown ? shown.dataset.live || location.href : sections()[0].dataset.live;
        const answer = await fetch(address, { cache: "no-store", redirect: "error" });
        if (answer.ok) renew(new DOMParser().parseFromString(await answer.text(), "text/html"));
      } catch {
        // The stream tells of a lost connection.
      }
    }
    isBusy = false;
  }

  // Where a view has a place for what came of a form, the form is sent without leaving the view.
  const told = document.getElementById("told");
  async function sendInPlace(form, button) {
    let answer;
    let fresh;
    try {
      answer = await fetch(form.getAttribute("action"), { method: "POST", body: new URLSearchParams(new FormData(form, button)) });
      fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch {
      document.getElementById("connection").hidden = false;
      return;
    }
    const outcome = fresh.getElementById("told");
    if (!outcome && answer.ok) return void location.assign(answer.url);
    const isFromNote = told.contains(form);
    if (outcome) told.replaceChildren(...outcome.childNodes);
    else tellRefusal(fresh);
    // The key of a message goes with that message, and the key of a repeated request with the request.
    for (const key of document.querySelectorAll("input[name=key]:not(#say input, [value^=again-])")) {
      key.value = fresh.querySelector("input[name=key]")?.value ?? key.value;
    }
    if (answer.ok) {
      const line = document.getElementById("add");
      for (const done of isFromNote ? [line] : [form]) done?.reset();
      form.closest("details.new")?.removeAttribute("open");
    }
    // What was changed is shown closed again; what was refused stays open.
    if (answer.ok && form.querySelector(FIELDS)) form.closest("details.change")?.removeAttribute("open");
    // The chat shows more than the answer may hold, so it is fetched from its own address.
    if (document.getElementById("live-chat")) await refresh();
    else if (outcome) renew(fresh, answer.ok ? form : null);
    if (isFromNote) {
      told.tabIndex = -1;
      told.focus({ preventScroll: true });
    }
  }
  // An error's page has no place for outcomes: its words are shown here, so that nothing typed is lost.
  function tellRefusal(page) {
    const why = document.createElement("p");
    why.className = "note bad";
    why.setAttribute("role", "alert");
    why.textContent = page.querySelector("main p:not(#connection)")?.textContent ?? "That didn’t work.";
    told.replaceChildren(why);
  }
  if (told) {
    document.addEventListener("submit", (event) => {
      if (event.defaultPrevented || event.target.method !== "post" || event.target.id === "say") return;
      event.preventDefault();
      sendInPlace(event.target, event.submitter);
    });
  }

  let stream = null;
  // What happened since the page was made isn't told by a stream that begins: the page is fetched once more.
  let isLost = true;
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
    mine.addEventListener("preview", showPreview);
    mine.onerror = () => {
      isLost = true;
      // A preview that goes on is shown again by the next stream.
      isOver = true;
      hidePreview();
      connection.hidden = false;
      if (mine.readyState !== EventSource.CLOSED || stream !== mine) return;
      stream = null;
      setTimeout(listen, RETRY_MS);
    };
  }

  function rest() {
    isOver = true;
    hidePreview();
    stream?.close();
    stream = null;
  }

  document.addEventListener("keydown", (event) => {
    const field = event.target;
    if (event.key !== "Enter" || event.isComposing || !field.matches?.("textarea")) return;
    // In the chat Enter alone sends, but for a keyboard on a screen, where nothing else begins a new line.
    const isChat = field.form?.id === "say" && !event.shiftKey && !matchMedia("(pointer: coarse)").matches;
    if (!isChat && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    field.form?.requestSubmit();
  });

  settle();
  const hint = document.getElementById("enter-sends");
  if (hint) hint.hidden = matchMedia("(pointer: coarse)").matches;
  if (sections().length === 0) return;
  for (const section of sections()) section.dataset.was = section.innerHTML;
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState !== "visible") return rest();
    isLost = true;
    listen();
    tellSeen(true);
  });
  // A chat begins at its end.
  const showEnd = () => scrollTo(0, document.documentElement.scrollHeight);
  if (document.getElementById("live-chat")) showEnd();
  document.addEventListener("said", () => {
    showEnd();
    refresh();
  });
  addEventListener("pagehide", rest);
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    settle();
    isLost = true;
    listen();
    tellSeen(true);
  });
  listen();
  tellSeen(true);
})();
