// The OpenAI SDK for Node: chats and responses.
import assert from "node:assert";
import OpenAI from "openai";

const { CLIENTS_URL: url, CLIENTS_MODEL: model } = process.env;
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
const question = [{ role: "user", content: "What is the capital of France?" }];
const options = { model, temperature: 0 };
const whole = await client.chat.completions.create({ messages: question, max_tokens: 30, ...options });
const text = whole.choices[0].message.content;
assert.match(text, /Paris/);
let streamed = "";
for await (const chunk of await client.chat.completions.create({ messages: question, max_tokens: 30, stream: true, ...options }))
  streamed += chunk.choices[0]?.delta?.content ?? "";
assert.equal(streamed, text);
const parameters = { type: "object", properties: { city: { type: "string", maxLength: 20 } }, required: ["city"] };
const tools = [{ type: "function", function: { name: "weather", parameters } }];
const called = await client.chat.completions.create({ messages: question, tools, tool_choice: "required", max_tokens: 80, ...options });
assert.equal(called.choices[0].message.tool_calls[0].function.name, "weather");
const response = await client.responses.create({ input: question, max_output_tokens: 30, ...options });
assert.equal(response.output_text, text);
const stream = client.responses.stream({ input: question, max_output_tokens: 30, ...options });
assert.equal((await stream.finalResponse()).output_text, text);
const format = { type: "json_schema", name: "city", schema: parameters, strict: true };
const json = await client.responses.create({ input: question, text: { format }, max_output_tokens: 60, ...options });
assert.ok("city" in JSON.parse(json.output_text));
