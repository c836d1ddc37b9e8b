"use strict";
// A little Markdown to elements. Text only ever becomes text nodes, and a link
// only where it begins with http: or https:, so nothing a model writes runs.

const INLINE = /(`+)([\s\S]*?[^`])\1(?!`)|\*\*([^*\n][\s\S]*?)\*\*|\*([^*\s][^*\n]*?)\*|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>()]+[^\s<>().,;:!?'"])/;

function inline(parent, text) {
  let rest = text;
  for (let hit = INLINE.exec(rest); hit; hit = INLINE.exec(rest)) {
    parent.append(rest.slice(0, hit.index));
    rest = rest.slice(hit.index + hit[0].length);
    if (hit[2] !== undefined) {
      const code = document.createElement("code");
      code.textContent = hit[2];
      parent.append(code);
    } else if (hit[3] !== undefined || hit[4] !== undefined) {
      const strong = document.createElement(hit[3] !== undefined ? "strong" : "em");
      inline(strong, hit[3] ?? hit[4]);
      parent.append(strong);
    } else {
      const link = document.createElement("a");
      link.href = hit[6] ?? hit[7];
      link.textContent = hit[5] ?? hit[7];
      link.rel = "noopener noreferrer nofollow";
      link.target = "_blank";
      parent.append(link);
    }
  }
  parent.append(rest);
}

function codeBlock(lines, at) {
  const fence = /^\s*(`{3,}|~{3,})/.exec(lines[at])[1];
  const pre = document.createElement("pre");
  pre.tabIndex = 0;
  const code = document.createElement("code");
  const inside = [];
  let i = at + 1;
  while (i < lines.length && !lines[i].trim().startsWith(fence)) inside.push(lines[i++]);
  code.textContent = inside.join("\n");
  pre.append(code);
  return [pre, i + 1];
}

function listBlock(lines, at) {
  const mark = /^\s*([-*+]|\d{1,9}[.)])\s+/;
  const numbered = /^\s*\d/.test(lines[at]);
  const list = document.createElement(numbered ? "ol" : "ul");
  if (numbered) list.start = parseInt(lines[at], 10) || 1;
  let i = at, item = null;
  for (; i < lines.length && lines[i].trim() !== ""; i++) {
    if (mark.test(lines[i])) {
      if (/^\s*\d/.test(lines[i]) !== numbered) break;
      item = document.createElement("li");
      inline(item, lines[i].replace(mark, ""));
      list.append(item);
    } else {
      item.append(" ");
      inline(item, lines[i].trim());
    }
  }
  return [list, i];
}

function paragraph(lines, at, tag, strip) {
  const starts = /^\s*(`{3,}|~{3,}|#{1,6}\s|>|[-*+]\s|\d{1,9}[.)]\s)/;
  const element = document.createElement(tag);
  let i = at;
  do {
    if (i > at) element.append(document.createElement("br"));
    inline(element, lines[i].replace(strip, ""));
    i++;
  } while (i < lines.length && lines[i].trim() !== "" && (tag === "blockquote" ? /^\s*>/.test(lines[i]) : !starts.test(lines[i])));
  return [element, i];
}

// Replaces what the element holds.
function renderMarkdown(element, text) {
  const lines = text.split("\n");
  const made = [];
  for (let i = 0; i < lines.length;) {
    let block;
    const heading = /^\s*(#{1,6})\s+(.*)/.exec(lines[i]);
    if (lines[i].trim() === "") {
      i++;
      continue;
    } else if (/^\s*(`{3,}|~{3,})/.test(lines[i])) {
      [block, i] = codeBlock(lines, i);
    } else if (heading) {
      block = document.createElement("h" + Math.min(heading[1].length + 2, 5));
      inline(block, heading[2]);
      i++;
    } else if (/^\s*>/.test(lines[i])) {
      [block, i] = paragraph(lines, i, "blockquote", /^\s*>\s?/);
    } else if (/^\s*([-*+]|\d{1,9}[.)])\s+/.test(lines[i])) {
      [block, i] = listBlock(lines, i);
    } else {
      [block, i] = paragraph(lines, i, "p", /^/);
    }
    made.push(block);
  }
  element.replaceChildren(...made);
}
