"use strict";
// A little Markdown to elements. Text only ever becomes text nodes, and a link
// only where it begins with http: or https:, so nothing a model writes runs.
// Every pattern stops at what could begin it again, so that long texts stay quick.

const CODE = "\uE000";  // stands for a piece of code while the rest is read
const INLINE = new RegExp([
  /\*\*(?=\S)((?:[^*]|\*(?!\*))+)\*\*/,
  /(?<![\w_])__(?=\S)((?:[^_]|_(?!_))+)__(?![\w_])/,
  /\*(?=[^*\s])([^*]+)\*/,
  /(?<![\w_])_(?=[^_\s])([^_]+)_(?![\w_])/,
  /~~(?=\S)([^~]+)~~/,
  /\[([^[\]]{1,300})\]\((https?:\/\/[^\s()]{1,2000})\)/,
  /(https?:\/\/[^\s<>()\uE000]{1,2000}[^\s<>().,;:!?'"*_~\uE000])/,
].map((r) => r.source).join("|"), "g");
const TAGS = { 1: "strong", 2: "strong", 3: "em", 4: "em", 5: "s" };
const MAX_DEPTH = 6;

function make(tag, ...children) {
  const element = document.createElement(tag);
  element.append(...children);
  return element;
}

// Pieces of code between equal runs of backticks, and the text with a mark for each.
function takeCode(text) {
  const runs = [...text.matchAll(/`+/g)];
  const next = new Map(), partner = new Array(runs.length);
  for (let i = runs.length - 1; i >= 0; i--) {
    partner[i] = next.get(runs[i][0].length);
    next.set(runs[i][0].length, i);
  }
  const codes = [];
  let out = "", done = 0;
  for (let i = 0; i < runs.length; i++) {
    if (partner[i] === undefined) continue;
    const begin = runs[i].index + runs[i][0].length, end = runs[partner[i]].index;
    codes.push(text.slice(begin, end).replace(/^ (.*[^ ].*) $/s, "$1"));
    out += text.slice(done, runs[i].index) + CODE;
    done = end + runs[i][0].length;
    i = partner[i];
  }
  return [out + text.slice(done), codes];
}

function appendText(parent, text, codes) {
  text.split(CODE).forEach((piece, i) => {
    if (i > 0) parent.append(make("code", codes.shift()));
    if (piece) parent.append(piece);
  });
}

function link(href, text, codes, depth) {
  const made = document.createElement("a");
  made.href = href;
  made.rel = "noopener noreferrer nofollow";
  made.target = "_blank";
  if (text === href) made.textContent = text;
  else styled(made, text, codes, depth + 1);
  return made;
}

function styled(parent, text, codes, depth) {
  if (depth > MAX_DEPTH) return appendText(parent, text, codes);
  let done = 0;
  for (const hit of text.matchAll(INLINE)) {
    appendText(parent, text.slice(done, hit.index), codes);
    done = hit.index + hit[0].length;
    const style = [1, 2, 3, 4, 5].find((i) => hit[i] !== undefined);
    if (style) {
      const element = make(TAGS[style]);
      styled(element, hit[style], codes, depth + 1);
      parent.append(element);
    } else {
      parent.append(link(hit[7] ?? hit[8], hit[6] ?? hit[8], codes, depth));
    }
  }
  appendText(parent, text.slice(done), codes);
}

function inline(parent, text) {
  const [rest, codes] = takeCode(text.replaceAll(CODE, ""));
  styled(parent, rest, codes, 0);
}

const FENCE = /^\s*(`{3,}|~{3,})/;
const HEADING = /^\s{0,3}(#{1,6})\s+(.*)/;
const RULE = /^\s{0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)/;
const TABLE_LINE = /^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

function isTable(lines, at) {
  const line = lines[at + 1] ?? "";
  return lines[at].includes("|") && line.includes("|") && line.length < 2000 && TABLE_LINE.test(line);
}

function startsBlock(lines, at) {
  const line = lines[at];
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || ITEM.test(line) || /^\s*>/.test(line) || isTable(lines, at);
}

function codeBlock(lines, at) {
  const fence = FENCE.exec(lines[at])[1];
  const inside = [];
  let i = at + 1;
  while (i < lines.length && !lines[i].trim().startsWith(fence)) inside.push(lines[i++]);
  const pre = make("pre", make("code", inside.join("\n")));
  pre.tabIndex = 0;
  return [pre, i + 1];
}

function cells(line) {
  return line.trim().replace(/^\|/, "").replace(/\|$/, "").split(/(?<!\\)\|/).map((c) => c.trim().replaceAll("\\|", "|"));
}

function row(tag, texts, columns) {
  const made = make("tr");
  for (let i = 0; i < columns; i++) {
    const cell = make(tag);
    inline(cell, texts[i] ?? "");
    made.append(cell);
  }
  return made;
}

function tableBlock(lines, at) {
  const head = cells(lines[at]);
  const body = make("tbody");
  let i = at + 2;
  for (; i < lines.length && lines[i].includes("|"); i++) body.append(row("td", cells(lines[i]), head.length));
  const box = make("div", make("table", make("thead", row("th", head, head.length)), body));
  box.className = "table";
  box.tabIndex = 0;
  return [box, i];
}

// Items that stand further in than this list are lists within its last item.
function listBlock(lines, at, depth = 0) {
  const [, space, mark] = ITEM.exec(lines[at]);
  const numbered = /\d/.test(mark);
  const list = make(numbered ? "ol" : "ul");
  if (numbered && parseInt(mark, 10) !== 1) list.start = parseInt(mark, 10);
  let i = at, item = null;
  while (i < lines.length) {
    const hit = ITEM.exec(lines[i]);
    if (lines[i].trim() === "") {
      // One empty line may stand between items.
      const after = ITEM.exec(lines[i + 1] ?? "");
      if (!after || after[1].length < space.length) break;
      i++;
    } else if (RULE.test(lines[i]) || FENCE.test(lines[i])) {
      break;
    } else if (!hit) {
      item.append(" ");
      inline(item, lines[i++].trim());
    } else if (hit[1].length < space.length) {
      break;
    } else if (hit[1].length > space.length + 1 && item && depth < MAX_DEPTH) {
      let inner;
      [inner, i] = listBlock(lines, i, depth + 1);
      item.append(inner);
    } else if (/\d/.test(hit[2]) !== numbered) {
      break;
    } else {
      item = make("li");
      inline(item, hit[3]);
      list.append(item);
      i++;
    }
  }
  return [list, i];
}

function paragraph(lines, at, tag, strip) {
  const element = make(tag);
  const quoted = tag === "blockquote";
  let i = at;
  do {
    if (i > at) element.append(make("br"));
    inline(element, lines[i].replace(strip, ""));
    i++;
  } while (i < lines.length && lines[i].trim() !== "" && (quoted ? /^\s*>/.test(lines[i]) : !startsBlock(lines, i)));
  return [element, i];
}

function block(lines, i) {
  const heading = HEADING.exec(lines[i]);
  if (FENCE.test(lines[i])) return codeBlock(lines, i);
  if (RULE.test(lines[i])) return [make("hr"), i + 1];
  if (heading) {
    const made = make("h" + Math.min(heading[1].length + 2, 5));
    inline(made, heading[2]);
    return [made, i + 1];
  }
  if (/^\s*>/.test(lines[i])) return paragraph(lines, i, "blockquote", /^\s*>\s?/);
  if (ITEM.test(lines[i])) return listBlock(lines, i);
  if (isTable(lines, i)) return tableBlock(lines, i);
  return paragraph(lines, i, "p", /^/);
}

// Replaces what the element holds.
function renderMarkdown(element, text) {
  const lines = text.split("\n");
  const blocks = [];
  for (let i = 0; i < lines.length;) {
    if (lines[i].trim() === "") {
      i++;
      continue;
    }
    let made;
    [made, i] = block(lines, i);
    blocks.push(made);
  }
  element.replaceChildren(...blocks);
}
