"use strict";
// The request on the screen as a program.
const SDK = new Set(["model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop",
  "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs", "response_format", "tools", "tool_choice",
  "parallel_tool_calls", "prediction", "metadata", "user"]); // parameters that the openai SDK has; others go into extra_body
const EXAMPLE = "What is the capital of France?";

const endpoint = () => new URL("v1", location.href).href;
const indented = (text) => text.replaceAll("\n", "\n  ");

function python(value, indent = "") {
  if (value === null || typeof value === "boolean") return { null: "None", true: "True", false: "False" }[value];
  if (typeof value !== "object") return JSON.stringify(value);
  const deeper = indent + "    ", [open, close] = Array.isArray(value) ? "[]" : "{}";
  const name = (key) => (Array.isArray(value) ? "" : JSON.stringify(key) + ": ");
  const items = Object.entries(value).map(([key, item]) => `${deeper}${name(key)}${python(item, deeper)},\n`);
  return items.length ? `${open}\n${items.join("")}${indent}${close}` : open + close;
}

const SNIPPETS = {
  curl(body, keyed) {
    const quoted = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
    const key = keyed ? `\\\n  -H "Authorization: Bearer $KNAPSERVE_API_KEY" ` : "";
    return `curl ${endpoint()}/chat/completions \\\n  -H 'Content-Type: application/json' ${key}\\\n  -d '${quoted}'`;
  },

  python(body, keyed) {
    const known = Object.entries(body).filter(([name]) => SDK.has(name)), own = Object.entries(body).filter(([name]) => !SDK.has(name));
    if (own.length) known.push(["extra_body", Object.fromEntries(own)]);
    const lines = known.map(([name, value]) => `    ${name}=${python(value, "    ")},\n`).join("");
    const key = keyed ? 'os.environ["KNAPSERVE_API_KEY"]' : '"none"';
    return `${keyed ? "import os\n\n" : ""}from openai import OpenAI\n\nclient = OpenAI(base_url="${endpoint()}", api_key=${key})\n`
      + `reply = client.chat.completions.create(\n${lines})\nprint(reply.choices[0].message.content)`;
  },

  javascript(body, keyed) {
    const key = keyed ? "\n    Authorization: `Bearer ${process.env.KNAPSERVE_API_KEY}`," : "";
    return `const reply = await fetch("${endpoint()}/chat/completions", {\n  method: "POST",\n`
      + `  headers: {\n    "Content-Type": "application/json",${key}\n  },\n`
      + `  body: JSON.stringify(${indented(JSON.stringify(body, null, 2))}),\n});\n`
      + "const { choices } = await reply.json();\nconsole.log(choices[0].message.content);";
  },
};

// Returns the request of the next answer if its question is typed, else that of the last answer, else an example.
function requestOnScreen() {
  const typed = $("text").value.trim(), current = unfinished?.mine === chat ? unfinished : null;
  const messages = (current ? [...current.messages, finished(current.answer)] : chat.messages).map(spoken);
  if (typed) messages.push({ role: "user", content: typed });
  while (messages.at(-1)?.role === "assistant") messages.pop();
  const what = typed ? "The request that Send makes" : messages.length ? "The request of the last answer" : "An example";
  if (!messages.length) messages.push({ role: "user", content: EXAMPLE });
  const made = typed ? null : current ?? chat.last, seed = made?.seed ?? chosenSeed();
  if (made?.answer.before) messages.push(made.history.at(-1));
  const body = { model: card?.id, ...parameters(withSystem(messages), $("draft").checked, seed) };
  delete body.stream; // the programs read whole answers
  delete body.stream_options;
  return { what: what + ", with the settings of this page.", body: JSON.parse(JSON.stringify(body)) }; // without undefined ones
}

function paintSnippet() {
  if ($("api").hidden) return;
  const language = document.querySelector("#languages [aria-selected=true]").dataset.language, wrong = wrongSetting();
  if (wrong) {
    setText($("api-what"), `${wrong.labels[0].firstChild.data.trim()}: ${wrong.validationMessage}`);
    setText($("snippet"), "");
    return;
  }
  const { what, body } = requestOnScreen();
  setText($("api-what"), what);
  setText($("snippet"), SNIPPETS[language](body, !!$("key").value));
}

function prepareTabs() {
  for (const list of document.querySelectorAll("[role=tablist]")) {
    const tabs = [...list.children];
    const select = (chosen) => {
      for (const tab of tabs) {
        tab.setAttribute("aria-selected", tab === chosen);
        tab.tabIndex = tab === chosen ? 0 : -1;
        if (list.id === "panels") $(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
      }
      paintSnippet();
      repaint(true);
    };
    for (const [i, tab] of tabs.entries()) {
      tab.addEventListener("click", () => select(tab));
      tab.addEventListener("keydown", ({ key }) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
        if (!step) return;
        const next = tabs.at((i + step) % tabs.length);
        next.focus();
        select(next);
      });
    }
  }
  const pre = $("snippet").parentElement;
  codeBox(pre, "");
}
