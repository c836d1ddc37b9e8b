// npm's `openai`, unchanged, against a running server. Started by check_openai_clients.py.
//   node check_openai_clients.mjs URL MODEL   (HEARTH_KEY, HEARTH_NODE_MODULES in the environment)
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.join(process.env.HEARTH_NODE_MODULES, "x.js"));
const { OpenAI } = require("openai");
const [url, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: url + "/v1", apiKey: process.env.HEARTH_KEY, maxRetries: 0 });
const messages = [{ role: "user", content: "What is the capital of France? Answer in one word." }];

function check(name, holds, detail = "") {
  console.log(`  ${holds ? "ok" : "FAILED"}  npm: ${name} ${holds ? "" : detail}`);
  if (!holds) process.exit(1);
}

const models = await client.models.list();
check("models.list", models.data[0].id === model);
const whole = await client.chat.completions.create({ model, messages, temperature: 0, max_tokens: 24 });
const text = whole.choices[0].message.content;
check("chat", text.length > 0);
let streamed = "", usage = null;
const stream = await client.chat.completions.create({
  model, messages, temperature: 0, max_tokens: 24, stream: true, stream_options: { include_usage: true },
});
for await (const event of stream) {
  streamed += event.choices[0]?.delta.content ?? "";
  usage = event.usage ?? usage;
}
check("chat, streamed: the same text", streamed === text, streamed);
check("usage", usage.completion_tokens === whole.usage.completion_tokens);
const helper = client.chat.completions.stream({ model, messages, temperature: 0, max_tokens: 24 });
check("the stream helper", (await helper.finalContent()) === text);
const scored = await client.completions.create({ model, prompt: "Paris is", echo: true, max_tokens: 0, logprobs: 2 });
check("completions", scored.choices[0].logprobs.token_logprobs[0] === null);
try {
  await client.chat.completions.create({ model: "other", messages });
  check("unknown model", false);
} catch (error) {
  check("unknown model", error instanceof OpenAI.NotFoundError && error.code === "model_not_found", String(error));
}
const long = await client.chat.completions.create({ model, messages, max_tokens: 400, stream: true });
for await (const _ of long) break;
check("a stream that is left", true);
