"use strict";
const headers = () => ({ "Content-Type": "application/json", ...($("key").value ? { Authorization: "Bearer " + $("key").value } : {}) });

async function replyError(reply) {
  const body = (await reply.json().catch(() => null))?.error ?? {};
  const error = new Error(body.message || `The server returned status ${reply.status} ${reply.statusText}`.trim() + ".");
  return Object.assign(error, { status: reply.status, code: body.code, wait: reply.headers.get("Retry-After") });
}

function advice(error) {
  if (error.status === 401) return "Enter the API key under Settings.";
  if (error.status === 429) return `Try again${error.wait ? ` in ${error.wait} s` : " soon"}.`;
  if (error.code === "context_length_exceeded") return "Start a new chat, or lower the maximum tokens under Settings.";
  return "";
}

function state(kind, text) {
  ready = kind === "ready";
  $("state").className = "dim " + kind;
  if ($("state").textContent !== text) $("state").textContent = text;
  updateButtons();
}

async function loadModel() {
  const possible = $("key").validity.valid; // no request can carry other characters
  const reply = possible && await fetch("v1/models", { headers: headers() });
  if (!possible || reply.status === 401) {
    rejectedKey = $("key").value;
    $("settings").open = true;
    return state("down", rejectedKey ? "The API key is incorrect." : "The server requires an API key: see Settings.");
  }
  if (!reply.ok) throw await replyError(reply);
  card = (await reply.json()).data[0];
  $("model").textContent = card.id;
  $("where").textContent = [card.device, card.dtype, card.draft_policy].filter(Boolean).join(" · ");
  state("ready", "ready");
}

async function checkHealth() {
  try {
    const reply = await fetch("health", { signal: AbortSignal.timeout(5000), cache: "no-store" });
    if (!reply.ok) throw await replyError(reply);
    if (!ready && rejectedKey !== $("key").value) await loadModel();
  } catch (error) {
    rejectedKey = null;
    state("down", error.status ? error.message : "The server does not respond; retrying.");
  }
}

async function watchHealth() {
  for (;;) {
    await checkHealth();
    await new Promise((wake) => setTimeout(wake, ready ? 5000 : 1000));
  }
}

const withSystem = (messages) => {
  const content = $("system").value.trim();
  return content ? [{ role: "system", content }, ...messages] : messages;
};
const spoken = ({ role, content }) => ({ role, content });
const chosenSeed = () => ($("seed").value === "" ? undefined : Number($("seed").value));

function isObject(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

// Returns the field of the first setting that is not valid.
function wrongSetting() {
  $("others").setCustomValidity(isObject($("others").value || "{}") ? "" : "Write a JSON object.");
  return $("form").querySelector(":invalid");
}

// The parameters of a request for these messages, without what only this page needs. The settings are valid.
function parameters(messages, drafting, seed) {
  const body = { messages, seed };
  if (messages.at(-1).role === "assistant") body.continue_final_message = true;
  const fields = [["temperature", "temperature"], ["top_p", "top_p"], ["max_tokens", "limit"]];
  for (const [name, id] of fields) if ($(id).value !== "") body[name] = Number($(id).value);
  return { ...body, ...JSON.parse($("others").value || "{}"), ...(drafting ? {} : { draft_policy: "none" }) };
}

async function* events(body) {
  let rest = "";
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const whole = (rest + value).split("\n\n");
    rest = whole.pop();
    for (const event of whole) if (event.startsWith("data: ") && event !== "data: [DONE]") yield JSON.parse(event.slice(6));
  }
}

