"use strict";
const log = $("log");
const PACE = 100; // minimum milliseconds between two repaints: painting takes CPU time from a local server

let card = null;           // model card of the served model
let ready = false;         // the server accepts requests
let rejectedKey = null;    // the API key that the server rejected
let running = null;        // AbortController of the current answer
let unfinished = null;     // the current answer, its conversation, messages and seed
let chat = newChat();      // the conversation on the screen
let newest = null;         // the answer started last
let shown = null;          // the answer whose figures are shown: in a comparison, the one with drafts
let writer = null;         // Writer of the current answer
let rates = {};            // tokens per second of the last question, with drafts and plain
let following = true;      // the log follows new text, until the user scrolls up
let scrolled = 0;
let leaving = false;       // the user has started to scroll up, before the first scroll event
let frame = null, timer = null; // of the pending repaint
let painted = -PACE;            // time of the last repaint
let pace = PACE;                // milliseconds between two repaints; more while painting takes long

function handleEvent(event, answer) {
  if (event.error) throw Object.assign(new Error(event.error.message), { code: event.error.code });
  if (event.metrics) answer.figures = event.metrics.speculative_decoding;
  const choice = event.choices[0];
  if (!choice) return;
  const { round, delta } = choice, thought = delta.reasoning_content ? " thought" : "";
  answer.text += delta.content ?? "";
  answer.thought ||= !!delta.reasoning_content;
  answer.ending = choice.finish_reason ?? answer.ending;
  if (round) {
    if (!answer.round) showAnswer(answer);
    answer.add(round, performance.now() / 1000);
    for (const [text, own] of round.tokens) writer.write(text, (own ? "own" : copied(round) ? "drafted lookup" : "drafted") + thought);
  } else if (!answer.round && delta.content) writer.write(delta.content, "own");
  repaint(answer.marks.length === 1);
}

// With its first token, the figures of an answer replace those of the previous one.
function showAnswer(answer) {
  if (!answer.again) rates = {};
  newest = answer;
  if (answer.drafting || !answer.again) shown = answer;
}

async function generate(history, drafting, seed, answer) {
  running = new AbortController();
  updateButtons();
  const body = JSON.stringify({ ...parameters(history, drafting, seed), n: 1, stream: true, return_rounds: true });
  const reply = await fetch("v1/chat/completions", { method: "POST", headers: headers(), signal: running.signal, body });
  if (!reply.ok) throw await replyError(reply);
  for await (const event of events(reply.body)) handleEvent(event, answer);
  if (!answer.ending) throw new Error("The answer ended unexpectedly.");
}

// Streams one answer into the log, after the tokens that it continues. Returns it and its box. After an error its text may be empty.
async function respond(history, drafting, seed, messages = null, begin = []) {
  const again = !messages, mine = chat, { role, content } = history.at(-1);
  const answer = new Answer(drafting, again, role === "assistant" ? content : "");
  const box = message("assistant running", "Answer");
  writer = new Writer(box.appendChild(make("div", "text")));
  for (const [text, className] of begin) writer.write(text, className);
  answer.written = writer.tokens;
  unfinished = again ? null : { mine, answer, messages, seed, history };
  $("announcement").textContent = "";
  paintSnippet();
  repaint();
  try {
    await generate(history, drafting, seed, answer);
  } catch (error) {
    if (error.name === "AbortError") answer.ending = "stopped"; else { answer.ending = "error"; fail(box, error); }
  }
  running = unfinished = null;
  writer.flush();
  writer = null;
  box.classList.remove("running");
  finishAnswer(box, answer);
  return { answer, box };
}

function fail(box, error) {
  const lost = error instanceof TypeError;
  box.classList.add("error");
  const text = [lost ? "The connection to the server was lost." : sentence(error.message), advice(error)].filter(Boolean).join(" ");
  const line = make("p", "problem", text);
  line.setAttribute("role", "alert");
  box.append(line);
  if (error.status === 401) $("settings").open = true;
  if (lost || error.status === 401 || error.status === 503) { state("down", "connecting"); checkHealth(); }
}

function factsOf(answer) {
  const facts = [...(answer.before ? ["continued"] : []), answer.drafting ? "drafting" : "plain decoding"];
  facts.push(`${answer.tokens} token${answer.tokens === 1 ? "" : "s"}`);
  if (answer.seconds > 0) facts.push(`${number(answer.rate)} per second`);
  if (answer.drafted) facts.push(`${answer.accepted} of ${answer.drafted} drafted tokens accepted`);
  else if (answer.drafting) facts.push("nothing drafted");
  if (answer.copied) facts.push(answer.copied === answer.drafted ? "all of them copied" : `of these, ${answer.acceptedCopies} of ${answer.copied} copied`);
  if (answer.drafting && answer.figures) facts.push(`policy ${answer.figures.policy}`);
  if (answer.ending === "stopped") facts.push("stopped");
  if (answer.ending === "error") facts.push("cut off by an error");
  if (answer.ending === "tool_calls") facts.push("the model calls a tool");
  else if (answer.complete && !answer.begun) facts.push("the model ended its answer at once");
  if (answer.ending === "length") facts.push(answer.thought && !answer.text ? "cut off within the reasoning: allow more tokens" : "cut off at the maximum tokens");
  return facts;
}

function finishAnswer(box, answer) {
  const facts = factsOf(answer);
  if (answer.tokens || answer.ending !== "error") box.append(make("p", "facts", facts.join(" · ")));
  if (answer.ending !== "error" && box.isConnected) $("announcement").textContent = `${box.querySelector(".text").innerText} ${facts.join(", ")}.`;
  updateButtons();
  repaint(true);
  const active = document.activeElement;
  if (!active || active === document.body || active.disabled) focusInput();
}

// Focuses the text box, except on touch screens, where a keyboard would cover the page.
const focusInput = () => { if (!touch()) $("text").focus({ preventScroll: true }); };

function message(kind, label, text = "") {
  $("welcome").hidden = true;
  const box = make("article", "message " + kind);
  box.setAttribute("aria-label", label);
  if (text) box.append(Object.assign(make("div", "text", text), { dir: "auto" }));
  log.append(box);
  following = true;
  leaving = false;
  return box;
}

function question(text, at) {
  const box = message("user", "You", text);
  box.dataset.at = at;
  addTools(box, button("Edit", "edit", () => edit(box, at)));
  return box;
}

function addTools(box, ...buttons) {
  const tools = make("div", "tools");
  tools.append(...buttons);
  box.append(tools);
}

const CUT = ["length", "stopped", "error"]; // endings after which an answer can be continued

function addAnswerTools(box, { content, tokens, ending }, at = null) {
  const text = content || tokens?.map(([text]) => text).join("") || ""; // an answer may consist of reasoning only
  const copier = button("Copy", "copy-text", () => copy(text, copier));
  const again = button("Retry", "retry", () => retry(at));
  if (at === null) return addTools(box, copier);
  box.dataset.at = at;
  const more = content && CUT.includes(ending) ? [button("Continue", "resume", () => resume(at))] : [];
  addTools(box, ...more, copier, again);
}

function updateButtons() {
  $("send").disabled = !ready || !!running;
  $("stop").disabled = !running;
  $("again").disabled = !ready || !!running || !chat.last;
  for (const edit of log.querySelectorAll(".edit")) edit.disabled = !!running;
  for (const another of log.querySelectorAll(".retry, .resume")) {
    another.hidden = !!running || Number(another.closest(".message").dataset.at) !== chat.messages.length - 1;
  }
  for (const sender of log.querySelectorAll(".retry, .resume, .ask-again")) sender.disabled = !ready || !!running;
}

// Whether a question can be sent now. Shows the first setting that is not valid.
function sendable() {
  if (running || !ready) return false;
  const wrong = wrongSetting();
  if (wrong) $("settings").open = true;
  wrong?.reportValidity();
  return !wrong;
}

function ask() {
  const text = $("text").value.trim();
  if (!text || !sendable()) return;
  $("text").value = "";
  send(text);
}

// Asks a question in place of the messages from `at` on. They are dropped once there is an answer.
async function send(text, at = chat.messages.length) {
  const drafting = $("draft").checked, mine = chat, replaced = cut(at);
  const asked = question(text, at), messages = [...mine.messages.slice(0, at), { role: "user", content: text }];
  const history = withSystem(messages.map(spoken));
  const seed = chosenSeed() ?? Math.floor(Math.random() * 2 ** 31);
  const { answer, box } = await respond(history, drafting, seed, messages);
  if (answer.counts) conclude(mine, messages, { history, seed, answer }, box);
  else {
    asked.before(...replaced);
    asked.classList.add("lost");
    asked.querySelector(".tools").remove();
    if (mine !== chat) return;
    if (!$("text").value) $("text").value = text;
    else addTools(asked, button("Ask again", "ask-again", () => { if (sendable()) { asked.remove(); box.remove(); send(text); } }));
  }
  updateButtons();
  repaint();
}

// Puts an answer into its conversation.
function conclude(mine, messages, last, box) {
  mine.messages = [...messages, finished(last.answer)];
  mine.last = last;
  addAnswerTools(box, mine.messages.at(-1), messages.length);
  keep(mine);
}

// Continues an answer that was cut off. If nothing comes, it stays as it was.
async function resume(at) {
  if (!sendable()) return;
  const mine = chat, messages = mine.messages.slice(0, at), said = mine.messages[at], replaced = cut(at), begin = unpack(said);
  const history = withSystem([...messages, said].map(spoken)), seed = chosenSeed() ?? Math.floor(Math.random() * 2 ** 31);
  const { answer, box } = await respond(history, $("draft").checked, seed, messages, begin);
  if (answer.counts) conclude(mine, messages, { history, seed, answer, begin }, box);
  else {
    box.before(...replaced);
    if (answer.ending === "error") box.querySelector(".text").remove(); else box.remove();
  }
  updateButtons();
  repaint();
}

// An answer as a conversation keeps it.
const finished = (answer) => ({
  role: "assistant", content: answer.text, tokens: pack(answer.written), facts: factsOf(answer).join(" · "), ending: answer.ending,
});

// Takes a message and all that follows out of the log. Returns their elements.
function cut(at) {
  const boxes = [...log.children], first = boxes.findIndex((box) => box.dataset.at === String(at));
  const taken = first < 0 || at === chat.messages.length ? [] : boxes.slice(first);
  for (const box of taken) box.remove();
  return taken;
}

function retry(at) {
  if (sendable()) send(chat.messages[at - 1].content, at - 1);
}

// Opens a question for editing. Its new text is sent in place of the old one.
function edit(box, at) {
  const editor = make("div", "editor"), area = make("textarea"), row = make("div", "row");
  const close = () => { editor.remove(); box.classList.remove("editing"); box.querySelector(".edit").focus(); };
  const submit = () => {
    const text = area.value.trim();
    if (!text || !sendable()) return;
    close();
    send(text, at);
    focusInput();
  };
  area.value = chat.messages[at].content;
  area.dir = "auto";
  area.setAttribute("aria-label", "Edited message");
  area.addEventListener("keydown", (event) => {
    if (sends(event)) { event.preventDefault(); submit(); }
    if (event.key === "Escape") { event.stopPropagation(); close(); }
  });
  row.append(button("Ask again", "ask-again", submit), button("Cancel", "", close));
  editor.append(area, row);
  box.append(editor);
  box.classList.add("editing");
  updateButtons();
  area.focus();
}

async function compare() {
  const last = chat.last;
  if (!last || !sendable()) return;
  const drafting = !last.answer.drafting;
  log.append(make("p", "note", `The same question, ${drafting ? "with drafting" : "with plain decoding"}`));
  const before = last.answer, { answer, box } = await respond(last.history, drafting, last.seed, null, last.begin);
  if (!answer.counts) return;
  addAnswerTools(box, finished(answer));
  last.answer = answer;
  if ([before, answer].every(({ ending }) => ending === "stop" || ending === "length")) log.append(make("p", "note", verdict(before, answer)));
  repaint();
}

function verdict(before, answer) {
  if (before.text === answer.text) return "Identical text.";
  const drawn = Number($("temperature").value) > 0 || $("temperature").value === "";
  return drawn ? "Different text: another sample of the same distribution." : "Different text: settings changed, or two tokens were equally likely.";
}

