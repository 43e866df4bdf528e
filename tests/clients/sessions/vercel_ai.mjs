// Vercel's AI SDK, with chats and with responses.
import assert from "node:assert";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, streamText, tool } from "ai";
import { z } from "zod";

const { CLIENTS_URL: url, CLIENTS_MODEL: name } = process.env;
const compatible = createOpenAICompatible({ name: "ours", baseURL: `${url}/v1`, supportsStructuredOutputs: true });
const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
const prompt = "What is the capital of France?";
const weather = tool({ description: "The weather of a city.", inputSchema: z.object({ city: z.string().max(20) }) });
for (const model of [compatible(name), openai.responses(name)]) {
  const options = { model, temperature: 0, maxOutputTokens: 80 };
  const { text } = await generateText({ prompt, ...options });
  assert.match(text, /Paris/);
  let streamed = "";
  for await (const delta of streamText({ prompt, ...options }).textStream) streamed += delta;
  assert.equal(streamed, text);
  const called = await generateText({ prompt, tools: { weather }, toolChoice: "required", ...options });
  assert.equal(called.toolCalls[0].toolName, "weather");
  const { object } = await generateObject({ prompt, schema: z.object({ city: z.string().max(20) }), ...options });
  assert.ok(object.city.length <= 20);
}

// Its default is to refer to what the server has stored.
const model = openai.responses(name);
const first = [{ role: "user", content: prompt }];
const answer = await generateText({ model, messages: first, temperature: 0, maxOutputTokens: 40 });
const messages = [...first, ...answer.response.messages, { role: "user", content: "And of Italy?" }];
const next = await generateText({ model, messages, temperature: 0, maxOutputTokens: 40 });
assert.match(JSON.stringify(next.request.body), /item_reference/);
assert.match(next.text, /Rome/);
