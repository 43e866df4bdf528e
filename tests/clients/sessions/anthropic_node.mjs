// The Anthropic SDK for Node: an answer, a stream, a tool.
import assert from "node:assert";
import Anthropic from "@anthropic-ai/sdk";

const { CLIENTS_URL: url, CLIENTS_MODEL: model } = process.env;
const client = new Anthropic({ baseURL: url, apiKey: "none" });
const messages = [{ role: "user", content: "What is the capital of France?" }];
const options = { model, max_tokens: 80, temperature: 0 };
const message = await client.messages.create({ messages, ...options });
assert.match(message.content[0].text, /Paris/);
const streamed = await client.messages.stream({ messages, ...options }).finalMessage();
assert.equal(streamed.content[0].text, message.content[0].text);
const schema = { type: "object", properties: { city: { type: "string", maxLength: 20 } }, required: ["city"] };
const tools = [{ name: "weather", description: "The weather of a city.", input_schema: schema }];
const called = await client.messages.create({ messages, tools, tool_choice: { type: "any" }, ...options });
assert.equal(called.stop_reason, "tool_use");
assert.ok("city" in called.content.find((block) => block.type === "tool_use").input);
