
// What the chat does beyond its HTML: it copies answers, and shows what was said before while somebody scrolls there.
(() => {
  "use strict";
  document.documentElement.classList.add("scripted");
  const SAID_MS = 2000;

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.(".copy");
    if (!button) return;
    const name = "Copy";
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Couldn’t copy";
    }
    setTimeout(() => { button.textContent = name; }, SAID_MS);
  });

  // What was said before comes in above what is being read, which stays where it is.
  const older = document.getElementById("older");
  async function showEarlier(link) {
    const answer = await fetch(link.href, { cache: "no-store", redirect: "error" });
    if (!answer.ok) return false;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = document.querySelector("#older .talk > li, #live-chat .talk > li, #live-chat");
    const top = next.getBoundingClientRect().top;
    older.querySelector(".talk").prepend(...page.querySelectorAll("#past > li"));
    const further = page.getElementById("earlier");
    if (further) link.href = further.href;
    else link.closest(".ways").remove();
    scrollBy({ top: next.getBoundingClientRect().top - top, behavior: "instant" });
    return Boolean(further);
  }
  const link = document.getElementById("earlier");
  if (older && link && document.getElementById("live-chat")) {
    document.documentElement.style.overflowAnchor = "none";
    const seen = new IntersectionObserver(async (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      // Observed anew, it is seen again if it is still there.
      seen.unobserve(link);
      try {
        if (await showEarlier(link)) seen.observe(link);
      } catch {
        // The link is still there to be followed.
      }
    }, { rootMargin: "300px 0px 0px" });
    // The chat begins at its end, so this is seen once somebody scrolls.
    requestAnimationFrame(() => requestAnimationFrame(() => seen.observe(link)));
  }

  // Files by the button, by paste and by drop: all become the form's own files, so that its ordinary sending takes them.
  const form = document.getElementById("say");
  const field = document.getElementById("files");
  if (!form || !field) return;
  const text = document.getElementById("text");
  const chosen = document.getElementById("chosen");
  const note = document.getElementById("say-note");
  const maxBytes = Number(form.dataset.maxBytes);
  const maxFiles = Number(form.dataset.maxFiles);
  let files = [];
  let recorder = null;
  let isKept = false;

  function tell(why) {
    note.textContent = why;
    note.hidden = !why;
  }

  // Hands the files to the form, and shows them with a way to leave each out.
  function setFiles(next) {
    files = next;
    const all = new DataTransfer();
    for (const file of files) all.items.add(file);
    field.files = all.files;
    chosen.hidden = files.length === 0;
    chosen.replaceChildren(...files.map((file, at) => {
      const item = document.createElement("li");
      const remove = document.createElement("button");
      remove.type = "button";
      remove.className = "quiet";
      remove.textContent = "Remove";
      remove.setAttribute("aria-label", `Remove ${file.name}`);
      remove.addEventListener("click", () => {
        setFiles(files.filter((_, other) => other !== at));
        text.focus();
      });
      if (file.type.startsWith("image/") && file.type !== "image/svg+xml") {
        const picture = document.createElement("img");
        picture.alt = "";
        picture.src = URL.createObjectURL(file);
        picture.addEventListener("load", () => URL.revokeObjectURL(picture.src));
        item.append(picture);
      }
      item.append(`${file.name}, ${sizeOf(file.size)} `, remove);
      return item;
    }));
  }

  function sizeOf(bytes) {
    const units = ["B", "KB", "MB", "GB"];
    let at = 0;
    while (bytes >= 1024 && at < units.length - 1) { bytes /= 1024; at += 1; }
    return `${at === 0 ? bytes : bytes.toFixed(1)} ${units[at]}`;
  }

  function addFiles(more) {
    const kept = [];
    const why = [];
    for (const file of more) {
      if (file.size === 0) why.push(`${file.name} is empty or a folder.`);
      else if (file.size > maxBytes) why.push(`${file.name} is larger than ${sizeOf(maxBytes)}, which is the limit.`);
      else if (files.length + kept.length >= maxFiles) why.push(`A message takes at most ${maxFiles} files; ${file.name} wasn’t added.`);
      else kept.push(file);
    }
    tell(why.join(" "));
    setFiles([...files, ...kept]);
  }

  field.addEventListener("change", () => addFiles([...field.files]));
  text.addEventListener("paste", (event) => {
    const pasted = [...event.clipboardData.files];
    // A copied table or text comes with a picture of itself.
    if (pasted.length === 0 || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    addFiles(pasted);
  });
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  let depth = 0;
  const showDrop = () => document.documentElement.classList.toggle("dropping", depth > 0);
  addEventListener("dragenter", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth += 1;
    showDrop();
  });
  addEventListener("dragleave", (event) => {
    if (!hasFiles(event)) return;
    depth = Math.max(0, depth - 1);
    showDrop();
  });
  addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth = 0;
    showDrop();
    addFiles([...event.dataTransfer.files]);
    text.focus();
  });

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (isSending) return;
    // The words go with what is being recorded.
    if (recorder) {
      isKept = true;
      recorder.stop();
      return;
    }
    const isEmpty = !text.value.trim() && files.length === 0 && !voiceField?.files.length;
    if (isEmpty) return void text.focus();
    sendMessage();
  });

  // Sends without leaving the page, so that whatever isn't taken is still here.
  let isSending = false;
  let showVoice = () => {};
  async function sendMessage() {
    const button = form.querySelector("[type=submit]");
    const sent = { text: text.value, files, voice: voiceField?.files[0] };
    const body = new FormData(form);
    isSending = true;
    if (files.length > 0 || sent.voice) button.textContent = "Sending…";
    try {
      const answer = await fetch(form.getAttribute("action"), { method: "POST", body });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (answer.ok) clear(sent, page);
      else tell(reasonOf(page));
    } catch {
      tell("I couldn’t be reached, so nothing may have been sent. Your message is still here.");
    }
    button.textContent = "Send";
    isSending = false;
    showVoice();
  }

  function reasonOf(page) {
    // Here the files are still in their field.
    page.getElementById("files-lost")?.remove();
    const why = page.getElementById("say-refused") ?? page.querySelector("main p:not(#connection)");
    return why?.textContent.trim() || "Your message wasn’t sent.";
  }

  // Takes away what was sent. What was written or added meanwhile stays.
  function clear(sent, page) {
    document.getElementById("say-refused")?.remove();
    tell("");
    text.value = text.value.startsWith(sent.text) ? text.value.slice(sent.text.length) : text.value;
    text.defaultValue = "";
    setFiles(files.filter((file) => !sent.files.includes(file)));
    if (sent.voice) dropRecording();
    form.querySelector("[name=key]").value = page.querySelector("#say [name=key]")?.value ?? "";
    if (form.contains(document.activeElement) && !recorder) text.focus();
    document.dispatchEvent(new Event("said"));
  }

  function dropRecording() {
    voiceField.value = "";
    form.querySelector("[name=seconds]").value = "";
  }

  // A recording from the microphone is sent as a voice note. These are the kinds that the server can decode.
  const KINDS = ["audio/ogg;codecs=opus", "audio/mp4"];
  const voice = document.getElementById("voice");
  const voiceField = voice?.querySelector("input[type=file]");
  const kind = window.MediaRecorder && KINDS.find((kind) => MediaRecorder.isTypeSupported(kind));
  if (!voice || !kind || !navigator.mediaDevices) return;
  voice.hidden = false;
  const record = document.getElementById("record");
  const discard = document.getElementById("discard");
  const recorded = document.getElementById("recorded");
  const BITS_PER_SECOND = 32000;

  const seconds = () => Math.max(1, Math.round((performance.now() - recorder.begun) / 1000));
  function showState() {
    const isOn = recorder !== null;
    // A recording that wasn't taken.
    const isHeld = !isOn && voiceField.files.length > 0 && !isSending;
    record.textContent = isOn ? "Stop and send" : "Record";
    record.classList.toggle("bad", isOn);
    discard.hidden = recorded.hidden = !isOn && !isHeld;
    if (isHeld) recorded.textContent = "Your recording is kept; “Send” sends it.";
    if (isOn) recorded.textContent = `${Math.floor(seconds() / 60)}:${String(seconds() % 60).padStart(2, "0")}`;
  }

  let isStarting = false;
  async function begin() {
    // The first click may still wait for the permission.
    if (isStarting) return;
    isStarting = true;
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1, noiseSuppression: true } });
    } catch {
      return tell("I can’t use the microphone. Allow it for this page in your browser’s settings.");
    } finally {
      isStarting = false;
    }
    tell("");
    dropRecording();
    const mine = new MediaRecorder(stream, { mimeType: kind, audioBitsPerSecond: BITS_PER_SECOND });
    const pieces = [];
    recorder = mine;
    mine.begun = performance.now();
    isKept = false;
    mine.ondataavailable = (event) => pieces.push(event.data);
    mine.onstop = () => {
      const length = seconds();
      clearInterval(mine.clock);
      for (const track of stream.getTracks()) track.stop();
      recorder = null;
      showState();
      if (isKept) send(new File(pieces, "voice", { type: mine.mimeType }), length);
    };
    mine.clock = setInterval(showState, 500);
    mine.start();
    showState();
  }

  function send(file, length) {
    if (file.size > maxBytes) return tell(`The recording is larger than ${sizeOf(maxBytes)}, so it wasn’t sent.`);
    const all = new DataTransfer();
    all.items.add(file);
    voiceField.files = all.files;
    voice.querySelector("[name=seconds]").value = length;
    form.requestSubmit();
  }

  showVoice = showState;
  record.addEventListener("click", () => {
    if (!recorder) return void begin();
    isKept = true;
    recorder.stop();
  });
  discard.addEventListener("click", () => {
    recorder?.stop();
    dropRecording();
    if (!recorder) showState();
    record.focus();
  });
})();
