"use strict";
// The chat page: talks to /v1 of its own server as any other client would.

const $ = (id) => document.getElementById(id);
const DEFAULTS = { system: "", temperature: "0.7", "top-p": "0.95", "max-tokens": "512", seed: "" };

let models = [];
let messages = [];      // {role, content}
let running = null;     // AbortController of the answer under way

// Settings

function loadSettings() {
  let kept = {};
  try { kept = JSON.parse(localStorage.getItem("hearth.settings") || "{}"); } catch { /* as if none */ }
  for (const name of Object.keys(DEFAULTS)) $(name).value = kept[name] ?? DEFAULTS[name];
  $("key").value = sessionStorage.getItem("hearth.key") || "";
}

function saveSettings() {
  const kept = {};
  for (const name of Object.keys(DEFAULTS)) kept[name] = $(name).value;
  try {
    localStorage.setItem("hearth.settings", JSON.stringify(kept));
    sessionStorage.setItem("hearth.key", $("key").value);
  } catch { /* a browser that keeps nothing still chats */ }
}

function headers() {
  const made = { "Content-Type": "application/json" };
  if ($("key").value) made.Authorization = "Bearer " + $("key").value;
  return made;
}

function notice(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

async function errorOf(answer) {
  let text = answer.status + " " + answer.statusText;
  try { text = (await answer.json()).error.message; } catch { /* not ours */ }
  if (answer.status === 401) {
    text += " (Settings has a place for it)";
  }
  return text;
}

async function loadModels() {
  try {
    const answer = await fetch("/v1/models", { headers: headers() });
    if (!answer.ok) {
      notice(await errorOf(answer));
      if (answer.status === 401) $("settings").showModal();
      return;
    }
    models = (await answer.json()).data;
    const chosen = $("model").value;
    $("model").replaceChildren(...models.map((m) => new Option(m.id, m.id)));
    if (models.some((m) => m.id === chosen)) $("model").value = chosen;
    $("greeting").textContent = chats() ? "Ask something." : "Begin a text: this model continues it.";
    notice("");
  } catch {
    notice("The server does not answer.");
  }
}

function chats() {
  const model = models.find((m) => m.id === $("model").value);
  return !model || model.chat;
}

// What is shown

function button(text, action) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", action);
  return made;
}

function show(role, content) {
  const item = document.createElement("li");
  item.className = "message " + role;
  const body = document.createElement("div");
  body.className = "body";
  if (role === "user") body.textContent = content;
  item.append(body);
  $("messages").append(item);
  $("empty").hidden = true;
  return item;
}

function atBottom() {
  const talk = $("talk");
  return talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80;
}

function toBottom() {
  $("talk").scrollTop = $("talk").scrollHeight;
}

function addTools(item, text) {
  const tools = document.createElement("div");
  tools.className = "tools";
  tools.append(
    button("Copy", async (e) => {
      try {
        await navigator.clipboard.writeText(text);
        e.target.textContent = "Copied";
      } catch {
        e.target.textContent = "Not allowed";
      }
    }),
    button("Again", again),
  );
  for (const old of document.querySelectorAll(".message .tools button:last-child")) {
    if (old.textContent === "Again") old.remove();
  }
  item.append(tools);
}

// Asking

function requestBody() {
  const body = {
    model: $("model").value,
    stream: true,
    stream_options: { include_usage: true },
    temperature: Number($("temperature").value || 0),
    top_p: Number($("top-p").value || 1),
    max_tokens: Number($("max-tokens").value || 512),
  };
  if ($("seed").value !== "") body.seed = Number($("seed").value);
  if (chats()) {
    body.messages = messages.map(({ role, content }) => ({ role, content }));
    if ($("system").value.trim()) body.messages.unshift({ role: "system", content: $("system").value });
  } else {
    body.prompt = messages.map((m) => m.content).join("");
  }
  return body;
}

// The events of a stream, one JSON object each.
async function* eventsOf(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    waiting += value;
    const parts = waiting.split("\n\n");
    waiting = parts.pop();
    for (const part of parts) {
      if (!part.startsWith("data: ") || part === "data: [DONE]") continue;
      yield JSON.parse(part.slice(6));
    }
  }
}

async function readAnswer(item, onText) {
  const answer = await fetch(chats() ? "/v1/chat/completions" : "/v1/completions", {
    method: "POST", headers: headers(), body: JSON.stringify(requestBody()), signal: running.signal,
  });
  if (!answer.ok) throw new Error(await errorOf(answer));
  const end = { finish: "", usage: null };
  for await (const event of eventsOf(answer)) {
    if (event.error) throw new Error(event.error.message);
    if (event.usage) end.usage = event.usage;
    for (const choice of event.choices) {
      onText(choice.delta ? choice.delta.content || "" : choice.text || "");
      end.finish = choice.finish_reason || end.finish;
    }
  }
  return end;
}

function setRunning(on) {
  $("send").hidden = on;
  $("stop").hidden = !on;
  $("model").disabled = on;
  if (on) running = new AbortController();
  else running = null;
}

function describe(end, tokens, seconds, first) {
  const made = end.usage ? end.usage.completion_tokens : tokens;
  const prompt = end.usage ? `${end.usage.prompt_tokens} tokens in, ` : "";
  const rate = seconds > 0 ? `, ${(made / seconds).toFixed(1)} tokens/s` : "";
  return `${prompt}${made} out${rate}, first after ${first.toFixed(2)} s`;
}

async function ask() {
  const item = show("assistant", "");
  item.classList.add("waiting");
  const body = item.querySelector(".body");
  let text = "", tokens = 0, first = 0, drawn = true;
  const start = performance.now();
  // Drawn at most once a frame, however fast tokens come.
  const draw = () => {
    drawn = true;
    const follow = atBottom();
    renderMarkdown(body, text);
    if (follow) toBottom();
  };
  setRunning(true);
  notice("");
  let why = "";
  try {
    const end = await readAnswer(item, (piece) => {
      if (!piece) return;
      if (tokens++ === 0) first = (performance.now() - start) / 1000;
      text += piece;
      if (drawn) {
        drawn = false;
        requestAnimationFrame(draw);
      }
    });
    if (end.finish === "length") why = "Ended at the most tokens that Settings allow.";
    $("status").textContent = describe(end, tokens, (performance.now() - start) / 1000, first);
  } catch (error) {
    if (error.name === "AbortError") why = "Stopped.";
    else notice(error.message);
  }
  setRunning(false);
  item.classList.remove("waiting");
  if (!text && !why) {
    item.remove();
  } else {
    draw();
    if (text) messages.push({ role: "assistant", content: text });
    if (why) {
      const note = document.createElement("p");
      note.className = "why";
      note.textContent = why;
      item.append(note);
    }
    addTools(item, text);
  }
  if (atBottom()) toBottom();
  if (matchMedia("(pointer: fine)").matches) $("prompt").focus();
}

function again() {
  if (running || messages.length === 0) return;
  if (messages.at(-1).role === "assistant") messages.pop();
  $("messages").lastElementChild?.remove();
  ask();
}

function grow() {
  const box = $("prompt");
  box.style.height = "auto";
  box.style.height = box.scrollHeight + "px";
}

function submit() {
  const text = $("prompt").value;
  if (running || !text.trim()) return;
  $("prompt").value = "";
  grow();
  messages.push({ role: "user", content: text });
  show("user", text);
  toBottom();
  ask();
}

function fresh() {
  running?.abort();
  messages = [];
  $("messages").replaceChildren();
  $("empty").hidden = false;
  $("status").textContent = "";
  notice("");
  $("prompt").focus();
}

// Wiring

$("composer").addEventListener("submit", (e) => { e.preventDefault(); submit(); });
$("prompt").addEventListener("input", grow);
$("prompt").addEventListener("keydown", (e) => {
  // An Enter that ends the composing of a character is not meant for us.
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); submit(); }
});
$("stop").addEventListener("click", () => running?.abort());
$("fresh").addEventListener("click", fresh);
$("open-settings").addEventListener("click", () => $("settings").showModal());
$("defaults").addEventListener("click", () => {
  for (const name of Object.keys(DEFAULTS)) $(name).value = DEFAULTS[name];
});
$("settings").addEventListener("close", () => { saveSettings(); loadModels(); });
$("model").addEventListener("change", loadModels);
document.addEventListener("keydown", (e) => {
  if (e.key === "Escape" && running && !$("settings").open) running.abort();
  if (e.key.toLowerCase() === "o" && e.ctrlKey && e.shiftKey) { e.preventDefault(); fresh(); }
});

loadSettings();
loadModels();
