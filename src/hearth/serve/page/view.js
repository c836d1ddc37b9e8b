"use strict";
// What is shown: messages with their buttons, and the place one reads at.

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
  else renderMarkdown(body, content);
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

function addWhy(item, text) {
  const note = document.createElement("p");
  note.className = "why";
  note.textContent = text;
  item.append(note);
}

async function copyText(text, on) {
  try {
    await navigator.clipboard.writeText(text);
    on.textContent = "Copied";
  } catch {
    on.textContent = "Not allowed";
  }
}

// Only the last message can be asked for again.
function dropAgain() {
  for (const old of document.querySelectorAll(".message .again")) old.remove();
}

function addTools(item, text, again) {
  const tools = document.createElement("div");
  tools.className = "tools";
  if (text) tools.append(button("Copy", (e) => copyText(text, e.target)));
  if (again) {
    dropAgain();
    const made = button("Again", again);
    made.classList.add("again");
    tools.append(made);
  }
  item.append(tools);
}

// A message that got no answer: it says why, and is no part of the talk unless it is sent again.
function markUnanswered(item, why, again) {
  item.classList.add("unanswered");
  addWhy(item, why);
  addTools(item, "", again);
}

function clearMarks(item) {
  item.classList.remove("unanswered");
  for (const part of item.querySelectorAll(".why, .tools")) part.remove();
}
