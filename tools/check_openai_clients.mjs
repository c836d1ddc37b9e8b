// npm's `openai`, unchanged, against a running server: chats, responses, embeddings. Started by check_openai_clients.py.
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
const response = await client.responses.create({ model, input: messages, temperature: 0, max_output_tokens: 24 });
check("responses", response.output_text === text, response.output_text);
const told = client.responses.stream({ model, input: messages, temperature: 0, max_output_tokens: 24 });
let deltas = "";
told.on("response.output_text.delta", (event) => { deltas += event.delta; });
check("responses: the stream helper", (await told.finalResponse()).output_text === text && deltas === text, deltas);
const city = { type: "object", properties: { city: { type: "string", maxLength: 12 } }, required: ["city"], additionalProperties: false };
const tools = [{ type: "function", name: "get_weather", strict: true, parameters: city }];
const asked = { model, input: messages, tools, tool_choice: "required", parallel_tool_calls: false, temperature: 0 };
const calls = client.responses.stream(asked);
let pieces = 0;
calls.on("response.function_call_arguments.delta", () => { pieces += 1; });
const call = (await calls.finalResponse()).output[0];
check("responses: a call, streamed", pieces > 1 && typeof JSON.parse(call.arguments).city === "string", call.arguments);
const helped = client.chat.completions.stream({
  model, messages, temperature: 0, max_tokens: 200, parallel_tool_calls: false, tool_choice: "required",
  tools: [{ type: "function", function: { name: "get_weather", parameters: city } }],
});
let bits = 0;
helped.on("tool_calls.function.arguments.delta", () => { bits += 1; });
const made = (await helped.finalChatCompletion()).choices[0].message.tool_calls[0];
check("tools: the stream helper", bits > 1 && typeof JSON.parse(made.function.arguments).city === "string", bits);
// By itself the client asks for base64 and decodes it.
const embedded = await client.embeddings.create({ model, input: ["The cat sits.", "It rains."] });
const float = await client.embeddings.create({ model, input: "The cat sits.", encoding_format: "float" });
const product = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
check("embeddings", embedded.data.length === 2 && Math.abs(product(embedded.data[0].embedding, float.data[0].embedding) - 1) < 1e-3);
try {
  await client.chat.completions.create({ model: "other", messages });
  check("unknown model", false);
} catch (error) {
  check("unknown model", error instanceof OpenAI.NotFoundError && error.code === "model_not_found", String(error));
}
const long = await client.chat.completions.create({ model, messages, max_tokens: 400, stream: true });
for await (const _ of long) break;
check("a stream that is left", true);
