"use strict";
// Settings, the key, and the models on offer.

const $ = (id) => document.getElementById(id);
const DEFAULTS = { system: "", temperature: "0.7", "top-p": "0.95", "max-tokens": "512", seed: "" };

let models = [];
let refusedKey = null;  // the last key that was turned away: asking for it again helps nobody

function loadSettings() {
  let kept = {};
  try { kept = JSON.parse(localStorage.getItem("hearth.settings") || "{}"); } catch { /* as if none */ }
  for (const name of Object.keys(DEFAULTS)) $(name).value = kept[name] ?? DEFAULTS[name];
  try { $("key").value = sessionStorage.getItem("hearth.key") || ""; } catch { /* as if none */ }
}

function saveSettings() {
  const kept = {};
  for (const name of Object.keys(DEFAULTS)) kept[name] = $(name).value;
  try {
    localStorage.setItem("hearth.settings", JSON.stringify(kept));
    sessionStorage.setItem("hearth.key", $("key").value);
  } catch { /* a browser that keeps nothing still chats */ }
}

// The number in a field, within what the field allows; its default where there is none.
function numberOf(name) {
  const field = $(name);
  const value = field.value.trim() === "" ? NaN : Number(field.value);
  const number = Number.isFinite(value) ? value : Number(DEFAULTS[name]);
  const low = field.min === "" ? -Infinity : Number(field.min);
  const high = field.max === "" ? Infinity : Number(field.max);
  return Math.min(Math.max(number, low), high);
}

function notice(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

function keyNote(text) {
  $("key-note").textContent = text;
  $("key-note").hidden = !text;
}

// Throws where the key cannot stand in a header.
function headers() {
  const made = { "Content-Type": "application/json" };
  const key = $("key").value.trim();
  if (key && !/^[\x21-\x7e]+$/.test(key)) {
    throw new Error("The API key may only hold Latin letters, digits and signs, without spaces.");
  }
  if (key) made.Authorization = "Bearer " + key;
  return made;
}

// What a browser throws when nobody is there says nothing to a person.
function plainError(error) {
  return error instanceof TypeError ? "The server does not answer." : error.message;
}

async function errorOf(answer) {
  try { return (await answer.json()).error.message; } catch { return answer.status + " " + answer.statusText; }
}

function openSettings(focus) {
  if (!$("settings").open) $("settings").showModal();
  if (focus) $(focus).focus();
}

// A key is missing or wrong: says so where it is typed, once for each.
async function keyRefused(answer) {
  const why = await errorOf(answer);
  notice(why + " (Settings has a place for it)");
  const key = $("key").value;
  if (key === refusedKey) return;
  refusedKey = key;
  keyNote(why);
  openSettings("key");
}

async function loadModels() {
  try {
    const answer = await fetch("/v1/models", { headers: headers() });
    if (answer.status === 401) return await keyRefused(answer);
    if (!answer.ok) return notice(await errorOf(answer));
    models = (await answer.json()).data;
    const chosen = $("model").value;
    $("model").replaceChildren(...models.map((m) => new Option(m.id, m.id)));
    if (models.some((m) => m.id === chosen)) $("model").value = chosen;
    modelChosen();
    refusedKey = null;
    keyNote("");
    notice("");
  } catch (error) {
    notice(plainError(error));
  }
}

function currentModel() {
  return models.find((m) => m.id === $("model").value);
}

function modelChosen() {
  $("model").title = $("model").value;
  $("greeting").textContent = chats() ? "Ask something." : "Begin a text: this model continues it.";
  // The server answers no request for more.
  $("max-tokens").max = currentModel()?.max_tokens ?? "";
}

function chats() {
  return currentModel()?.chat ?? true;
}
