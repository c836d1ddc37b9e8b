// A real browser on the chat page: types, streams, stops, settings, phone and desktop, light and dark.
//
//   hearth serve MODEL --port 8080 &
//   node tools/check_chat_page.mjs http://127.0.0.1:8080 [FOLDER]
//
// FOLDER receives screenshots to look at. Needs npm's playwright-core (NODE_PATH or node_modules) and Debian's chromium;
// exits 77 where either is absent.
import { existsSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const url = process.argv[2] ?? "http://127.0.0.1:8080";
const folder = process.argv[3] ?? "build/chat_page";
const browser_path = ["/usr/bin/chromium", "/usr/bin/google-chrome"].find(existsSync);
const places = [process.env.NODE_PATH ?? "", path.resolve("node_modules")];
const place = places.find((p) => p && existsSync(path.join(p, "playwright-core")));
if (!browser_path || !place) {
  console.log("SKIP: chromium or npm's playwright-core is not installed");
  process.exit(77);
}
const { chromium } = createRequire(path.join(place, "x.js"))("playwright-core");
mkdirSync(folder, { recursive: true });

let failed = 0;
function check(name, holds, detail = "") {
  console.log(`  ${holds ? "ok" : "FAILED"}  ${name} ${holds ? "" : detail}`);
  failed += holds ? 0 : 1;
}

const browser = await chromium.launch({ executablePath: browser_path, args: ["--no-sandbox"] });

async function open(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.problems = [];
  page.on("console", (m) => { if (m.type() === "error") page.problems.push(m.text()); });
  page.on("pageerror", (e) => page.problems.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(url)) page.problems.push("foreign request " + r.url()); });
  await page.goto(url);
  await page.waitForFunction(() => document.querySelector("#model").options.length > 0);
  return page;
}

async function answered(page, timeout = 180_000) {
  await page.waitForFunction(() => !document.querySelector("#send").hidden, null, { timeout });
}

async function overflows(page) {
  return page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
}

async function desktop() {
  const page = await open({ viewport: { width: 1280, height: 800 }, colorScheme: "light" });
  check("the message box has the focus", await page.evaluate(() => document.activeElement.id === "prompt"));
  await page.keyboard.type("Write two short sentences about the sea.");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("Then a list of three fish.");
  check("Shift+Enter makes a line", (await page.inputValue("#prompt")).includes("\n"));
  await page.keyboard.press("Enter");
  await page.waitForSelector("#stop:not([hidden])");
  await page.waitForFunction(() => document.querySelector(".assistant .body").textContent.length > 0, null, { timeout: 180_000 });
  check("text shows while it streams", await page.isVisible("#stop"));
  await answered(page);
  const text = await page.textContent(".assistant .body");
  check("an answer", text.length > 10, text);
  check("how fast it was", /tokens\/s/.test(await page.textContent("#status")));
  await page.screenshot({ path: path.join(folder, "desktop-light.png") });

  await page.keyboard.type("Tell me a very long story.");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".assistant .body")[1]?.textContent.length > 20, null, { timeout: 180_000 });
  await page.keyboard.press("Escape");
  await answered(page, 5000);
  check("Esc stops", (await page.textContent("#messages")).includes("Stopped."));
  await page.click("#open-settings");
  await page.fill("#max-tokens", "8");
  await page.fill("#system", "Answer in one word.");
  await page.screenshot({ path: path.join(folder, "desktop-settings.png") });
  await page.keyboard.press("Escape");
  await page.reload();
  await page.waitForFunction(() => document.querySelector("#model").options.length > 0);
  check("settings are kept", (await page.inputValue("#max-tokens")) === "8");
  check("no problem in the console", page.problems.length === 0, page.problems.join("; "));
  await page.context().close();
}

async function phone() {
  const page = await open({ viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true, colorScheme: "dark" });
  await page.screenshot({ path: path.join(folder, "phone-empty.png") });
  await page.fill("#prompt", "What is the capital of France?");
  await page.tap("#send");
  await answered(page);
  check("a phone gets an answer", (await page.textContent(".assistant .body")).length > 0);
  check("nothing is wider than the phone", !(await overflows(page)));
  const small = await page.evaluate(() => [...document.querySelectorAll("header button, #send")].filter((b) => b.getBoundingClientRect().height < 36).length);
  check("buttons are large enough for a finger", small === 0);
  await page.screenshot({ path: path.join(folder, "phone-dark.png") });
  await page.tap("#open-settings");
  await page.screenshot({ path: path.join(folder, "phone-settings.png") });
  check("no problem in the phone's console", page.problems.length === 0, page.problems.join("; "));
  await page.context().close();
}

const roles = (page) => page.evaluate(() => messages.map((m) => m.role).join());

// A talk that is left, broken, refused, and loaded again.
async function talks() {
  const page = await open({ viewport: { width: 1000, height: 700 } });
  const api = "**/v1/*completions*", chat = "**/v1/chat/completions";
  let sent = null;
  page.on("request", (r) => { if (r.method() === "POST") sent = JSON.parse(r.postData()); });
  await page.fill("#prompt", "Write a very long story about a whale.");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".assistant .body")?.textContent.length > 20, null, { timeout: 180_000 });
  await page.click("#fresh");
  await page.waitForTimeout(500);
  check("a new chat is empty while an answer runs", (await roles(page)) === "" && (await page.locator("#messages li").count()) === 0);
  await page.fill("#prompt", "Hi");
  await page.keyboard.press("Enter");
  await answered(page);
  check("and begins anew", sent.messages.length === 1, JSON.stringify(sent.messages));
  check("the status is of this answer", /tokens\/s/.test(await page.textContent("#status")));

  for (const pattern of [api, chat]) await page.route(pattern, (r) => r.abort());
  await page.fill("#prompt", "Are you there?");
  await page.keyboard.press("Enter");
  await answered(page);
  check("a dead server is named", (await page.textContent("#notice")) === "The server does not answer.", await page.textContent("#notice"));
  check("what was not answered is no part of the talk", (await roles(page)) === "user,assistant");
  await page.screenshot({ path: path.join(folder, "unanswered.png") });
  await page.unroute(chat);
  await page.unroute(api);
  await page.getByText("Again", { exact: true }).click();
  await answered(page);
  check("it can be asked again", (await roles(page)) === "user,assistant,user,assistant", await roles(page));
  check("and shows once", (await page.locator("#messages .user").count()) === 2);

  await page.route(chat, (r) => r.fulfill({ status: 400, contentType: "application/json", body: '{"error":{"message":"no such thing"}}' }));
  await page.fill("#prompt", "One");
  await page.keyboard.press("Enter");
  await answered(page);
  check("an error says why, where it was asked", (await page.textContent(".unanswered .why")) === "no such thing");
  await page.unroute(chat);
  await page.fill("#prompt", "Two");
  await page.keyboard.press("Enter");
  await answered(page);
  const turns = sent.messages.map((m) => m.role).join();
  check("users and answers take turns", turns === "user,assistant,user,assistant,user", turns);

  await page.reload();
  await page.waitForFunction(() => document.querySelector("#model").options.length > 0);
  check("a talk survives a reload", (await page.locator("#messages .assistant").count()) === 3 && (await roles(page)).startsWith("user,assistant"));
  await page.route("**/v1/models", async (r) => {
    const answer = await r.fetch(), body = await answer.json();
    for (const m of body.data) m.max_tokens = 7;
    await r.fulfill({ response: answer, json: body });
  });
  await page.reload();
  await page.waitForFunction(() => document.querySelector("#max-tokens").max === "7");
  await page.fill("#prompt", "Short");
  await page.keyboard.press("Enter");
  await answered(page);
  check("no more is asked for than the server gives", sent.max_tokens === 7, String(sent.max_tokens));
  await page.context().close();
}

// A server that wants a key, played by the browser.
async function keys() {
  const context = await browser.newContext({ viewport: { width: 1000, height: 700 } });
  const page = await context.newPage();
  const good = "a-good-key-0123456789";
  await page.route("**/v1/**", (r) => {
    if (r.request().headers().authorization === "Bearer " + good) return r.continue();
    return r.fulfill({ status: 401, contentType: "application/json", body: '{"error":{"message":"the API key is not known here"}}' });
  });
  const opened = () => page.evaluate(() => document.querySelector("#settings").open);
  await page.goto(url);
  await page.waitForSelector("#settings[open]");
  check("a missing key is asked for", (await page.evaluate(() => document.activeElement.id)) === "key");
  check("and why is said there", (await page.textContent("#key-note")) === "the API key is not known here");
  await page.screenshot({ path: path.join(folder, "key.png") });
  await page.keyboard.press("Escape");
  await page.waitForTimeout(400);
  check("Esc closes it for good", !(await opened()));
  await page.click("#open-settings");
  await page.fill("#key", "\u043a\u043b\u044e\u0447");
  await page.keyboard.press("Escape");
  await page.waitForTimeout(400);
  check("letters that no key has are named", (await page.textContent("#notice")).includes("Latin"), await page.textContent("#notice"));
  await page.click("#open-settings");
  await page.fill("#key", "a-wrong-key-0123456789");
  await page.click("#settings-form button.main");
  await page.waitForTimeout(400);
  check("a wrong key is asked for again, once", (await opened()) && (await page.evaluate(() => document.activeElement.id)) === "key");
  await page.fill("#key", good);
  await page.click("#settings-form button.main");
  await page.waitForFunction(() => document.querySelector("#model").options.length > 0);
  check("the right one is taken", !(await opened()) && (await page.isHidden("#notice")));
  check("and not kept for good", !(await page.evaluate(() => JSON.stringify(localStorage))).includes(good));
  await context.close();
}

// What a model might write, given to the page's own Markdown.
async function hostile() {
  const page = await open({});
  const result = await page.evaluate(() => {
    const box = document.createElement("div");
    renderMarkdown(box, [
      "<img src=x onerror=alert(1)> <script>alert(2)</" + "script>",
      "[a](javascript:alert(3)) [b](https://example.org/?q=1) **bold** `co<b>de`",
      "```html", "<b>not bold</b>", "```", "1. one", "2. *two*", "", "> quote", "# Title",
    ].join("\n"));
    return {
      images: box.querySelectorAll("img, script").length,
      links: [...box.querySelectorAll("a")].map((a) => a.href),
      html: box.innerHTML,
      code: box.querySelector("pre").textContent,
      items: box.querySelectorAll("ol li").length,
    };
  });
  check("markup stays text", result.images === 0 && result.html.includes("&lt;img"), result.html);
  check("only http links", result.links.join() === "https://example.org/?q=1", result.links.join());
  check("code and lists", result.code === "<b>not bold</b>" && result.items === 2, result.html);
  const more = await page.evaluate(() => {
    const html = (text) => { const box = document.createElement("div"); renderMarkdown(box, text); return box.innerHTML; };
    const slow = {
      backticks: "`".repeat(20_000), runs: Array.from({ length: 300 }, (_, i) => "`".repeat(i + 1) + "x").join(""),
      brackets: "[".repeat(20_000), stars: "**a ".repeat(6000), star: "*a ".repeat(7000), lists: "- a\n".repeat(5000),
      deep: Array.from({ length: 200 }, (_, i) => " ".repeat(2 * i) + "- x").join("\n"), pipes: "|".repeat(20_000) + "\n" + "|-".repeat(900),
      urls: "http://".repeat(3000), under: "_a ".repeat(7000), spaces: " ".repeat(20_000) + "x", quotes: ">".repeat(20_000),
    };
    const late = [];
    for (const [name, text] of Object.entries(slow)) {
      const start = performance.now();
      html(text);
      if (performance.now() - start > 1000) late.push(name);
    }
    return {
      table: html("| a | b |\n|---|:-:|\n| **1** | `x|y` |\n| 2 |"), rule: html("a\n\n---\n\nb"), bold: html("__b__ a_b_c _i_ ~~s~~"),
      nested: html("1. a\n   - b\n     - c\n   - d\n2. e"), code: html("**a `b*c` d** ``x`y``"), math: html("3 * 4 * 5 and 2 ** 3"), late,
    };
  });
  check("tables", (more.table.match(/<td>/g) ?? []).length === 4 && more.table.includes("<td><strong>1</strong></td>"), more.table);
  check("rules and bold", more.rule === "<p>a</p><hr><p>b</p>" && more.bold === "<p><strong>b</strong> a_b_c <em>i</em> <s>s</s></p>", more.rule + more.bold);
  check("lists in lists", more.nested === "<ol><li>a<ul><li>b<ul><li>c</li></ul></li><li>d</li></ul></li><li>e</li></ol>", more.nested);
  check("code within bold", more.code === "<p><strong>a <code>b*c</code> d</strong> <code>x`y</code></p>", more.code);
  check("stars that are none", more.math === "<p>3 * 4 * 5 and 2 ** 3</p>", more.math);
  check("nothing draws for long", more.late.length === 0, more.late.join());
  const blocked = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    document.body.append(script);
    return window.ran !== true;
  });
  check("the policy stops inline script", blocked);
  await page.context().close();
}

try {
  await desktop();
  await phone();
  await talks();
  await keys();
  await hostile();
} finally {
  await browser.close();
}
console.log(failed ? `${failed} failed` : `all hold; look at ${folder}`);
process.exit(failed ? 1 : 0);
