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
  await hostile();
} finally {
  await browser.close();
}
console.log(failed ? `${failed} failed` : `all hold; look at ${folder}`);
process.exit(failed ? 1 : 0);
