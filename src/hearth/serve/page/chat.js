"use strict";
// The chat page: talks to /v1 of its own server as any other client would.

let messages = [];      // {role, content}: what the model is told; a question and its answer in turns
let running = null;     // AbortController of the answer under way

// What is said stays in this tab when it is loaded again.

function keepTalk() {
  try { sessionStorage.setItem("hearth.talk", JSON.stringify(messages)); } catch { /* too long, or nothing is kept */ }
}

function restoreTalk() {
  let kept = [];
  try { kept = JSON.parse(sessionStorage.getItem("hearth.talk") || "[]"); } catch { /* as if none */ }
  if (!Array.isArray(kept)) return;
  for (const { role, content } of kept) {
    if (typeof content !== "string" || (role !== "user" && role !== "assistant")) return;
    messages.push({ role, content });
    const item = show(role, content);
    if (role === "assistant") addTools(item, content, again);
  }
  toBottom();
}

// Asking

function requestBody() {
  const body = {
    model: $("model").value,
    stream: true,
    stream_options: { include_usage: true },
    temperature: numberOf("temperature"),
    top_p: numberOf("top-p"),
    max_tokens: Math.round(numberOf("max-tokens")),
  };
  const seed = Number($("seed").value);
  if ($("seed").value !== "" && Number.isSafeInteger(seed)) body.seed = seed;
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

async function readAnswer(signal, onText) {
  const answer = await fetch(chats() ? "/v1/chat/completions" : "/v1/completions", {
    method: "POST", headers: headers(), body: JSON.stringify(requestBody()), signal,
  });
  if (answer.status === 401) await keyRefused(answer.clone());
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
  if (!end.finish) throw new TypeError("the stream ended early");
  return end;
}

function setRunning(controller) {
  running = controller;
  $("send").hidden = Boolean(controller);
  $("stop").hidden = !controller;
  $("model").disabled = Boolean(controller);
}

function describe(end, tokens, seconds, first) {
  const made = end.usage ? end.usage.completion_tokens : tokens;
  const prompt = end.usage ? `${end.usage.prompt_tokens} tokens in, ` : "";
  const rate = seconds > 0 ? `, ${(made / seconds).toFixed(1)} tokens/s` : "";
  return `${prompt}${made} out${rate}, first after ${first.toFixed(2)} s`;
}

// Shows a text that grows: at most once a frame, and less often where drawing itself takes long.
function drawer(body) {
  let text = "", due = false, cost = 0;
  const draw = () => {
    due = false;
    const start = performance.now(), follow = atBottom();
    renderMarkdown(body, text);
    if (follow) toBottom();
    cost = performance.now() - start;
  };
  const later = () => (cost > 8 ? setTimeout(draw, 4 * cost) : requestAnimationFrame(draw));
  return {
    add(piece) {
      text += piece;
      if (!due) { due = true; later(); }
    },
    finish() { draw(); return text; },
  };
}

// Asks for the answer to the last message, which `question` shows. What comes after the talk was
// ended belongs to nobody.
async function ask(question) {
  const talk = messages, controller = new AbortController();
  const item = show("assistant", "");
  item.classList.add("waiting");
  const drawn = drawer(item.querySelector(".body"));
  let tokens = 0, first = 0, why = "", stopped = false;
  const start = performance.now();
  setRunning(controller);
  notice("");
  $("status").textContent = "";
  try {
    const end = await readAnswer(controller.signal, (piece) => {
      if (!piece) return;
      if (tokens++ === 0) first = (performance.now() - start) / 1000;
      drawn.add(piece);
    });
    if (end.finish === "length") why = "Ended at the most tokens that Settings allow.";
    if (talk === messages) $("status").textContent = describe(end, tokens, (performance.now() - start) / 1000, first);
  } catch (error) {
    stopped = error.name === "AbortError";
    why = stopped ? "Stopped." : tokens && error instanceof TypeError ? "The connection broke." : plainError(error);
  }
  if (talk !== messages) return;
  setRunning(null);
  item.classList.remove("waiting");
  const text = drawn.finish();
  if (text) {
    messages.push({ role: "assistant", content: text });
    if (why) addWhy(item, why);
    addTools(item, text, again);
  } else {
    item.remove();
    messages.pop();
    markUnanswered(question, why || "The answer was empty.", () => askAgain(question));
  }
  keepTalk();
  if (why && !stopped && !text) notice(why);
  if (atBottom()) toBottom();
  if (!$("settings").open && matchMedia("(pointer: fine)").matches) $("prompt").focus();
}

// The question of the last answer, once more.
function again() {
  if (running || messages.at(-1)?.role !== "assistant") return;
  messages.pop();
  $("messages").lastElementChild.remove();
  ask($("messages").lastElementChild);
}

// A question that got no answer.
function askAgain(question) {
  if (running) return;
  messages.push({ role: "user", content: question.querySelector(".body").textContent });
  clearMarks(question);
  ask(question);
}

function grow() {
  const box = $("prompt");
  box.style.height = "auto";
  box.style.height = box.scrollHeight + "px";
}

async function submit() {
  if (running || !$("prompt").value.trim()) return;
  if (models.length === 0) await loadModels();
  if (models.length === 0 || running) return;
  const text = $("prompt").value;
  $("prompt").value = "";
  grow();
  dropAgain();
  messages.push({ role: "user", content: text });
  const question = show("user", text);
  toBottom();
  ask(question);
}

function fresh() {
  running?.abort();
  setRunning(null);
  messages = [];
  keepTalk();
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
$("open-settings").addEventListener("click", () => openSettings());
$("defaults").addEventListener("click", () => {
  for (const name of Object.keys(DEFAULTS)) $(name).value = DEFAULTS[name];
});
$("settings").addEventListener("close", () => { saveSettings(); loadModels(); });
$("model").addEventListener("change", modelChosen);
document.addEventListener("keydown", (e) => {
  if (e.key === "Escape" && running && !$("settings").open) running.abort();
  if (e.key.toLowerCase() === "o" && e.ctrlKey && e.shiftKey) { e.preventDefault(); fresh(); }
});

loadSettings();
restoreTalk();
loadModels();
