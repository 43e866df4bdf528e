"use strict";
// The list of conversations, and the one on the screen.

function keep(one) {
  if (one.gone) return;
  const kept = saveChat(one);
  setText($("kept"), kept ? "" : "This browser does not keep conversations: its storage is full or blocked.");
  paintChats();
}

// Texts that are typed but not sent, by conversation. Conversations without messages share one entry.
const unsent = new Map(), placeOf = (one) => (one.messages.length ? one.id : "");

function openChat(next) {
  if (running) running.abort();
  unsent.set(placeOf(chat), $("text").value);
  chat = next;
  $("text").value = unsent.get(placeOf(chat)) ?? "";
  newest = shown = null;
  rates = {};
  log.replaceChildren($("welcome"));
  $("welcome").hidden = false;
  $("announcement").textContent = "";
  for (const [at, said] of chat.messages.entries()) if (said.role === "user") question(said.content, at); else restore(said, at);
  remember(chat);
  paintChats();
  updateButtons();
  repaint(true);
}

function restore(said, at) {
  const box = message("assistant", "Answer"), written = new Writer(box.appendChild(make("div", "text")));
  for (const [text, className] of unpack(said)) written.write(text, className);
  written.flush();
  if (typeof said.facts === "string") box.append(make("p", "facts", said.facts));
  addAnswerTools(box, { ...said, tokens: unpack(said) }, at);
}

function startChat() {
  openChat(newChat());
  focusInput();
}

// A title that is being edited stays.
function paintChats() {
  if ($("chat-list").querySelector("input")) return;
  const sorted = [...chats.values()].sort((a, b) => b.updated - a.updated);
  $("chat-list").replaceChildren(...sorted.map(chatLine));
  $("no-chats").hidden = sorted.length > 0;
  $("export").disabled = !sorted.length;
}

function chatLine(one) {
  const line = make("li");
  const opener = button(one.title, "title", () => { if (one !== chat) openChat(latest(one)); $("chats").hidePopover(); focusInput(); });
  line.dataset.id = one.id;
  opener.title = one.title;
  opener.dir = "auto";
  if (one === chat) opener.setAttribute("aria-current", "true");
  const renamer = button("✎", "small rename", () => rename(line, one)), remover = button("", "small", () => {
    if (remover.classList.contains("sure")) remove(one); else labelRemover(true);
  });
  const labelRemover = (sure) => {
    remover.classList.toggle("sure", sure);
    remover.textContent = sure ? "Delete" : "×";
    remover.setAttribute("aria-label", `${sure ? "Confirm: delete" : "Delete"} ${one.title}`);
  };
  labelRemover(false);
  remover.addEventListener("blur", () => labelRemover(false));
  renamer.setAttribute("aria-label", `Rename ${one.title}`);
  line.append(opener, renamer, remover);
  return line;
}

function rename(line, one) {
  const input = make("input");
  input.value = one.title;
  input.setAttribute("aria-label", "Title");
  const close = (title) => {
    input.onblur = null;
    input.remove();
    if (title && !one.gone) { one.title = title; writeChat(one, one.messages); }
    paintChats();
  };
  const closeByKey = (title) => {
    close(title);
    [...$("chat-list").children].find(({ dataset }) => dataset.id === one.id)?.querySelector(".rename").focus();
  };
  input.onblur = () => close(input.value.trim());
  input.addEventListener("keydown", (event) => {
    const done = event.key === "Enter" && !event.isComposing, cancelled = event.key === "Escape";
    if (!done && !cancelled) return;
    event.stopPropagation();
    event.preventDefault();
    closeByKey(done ? input.value.trim() : "");
  });
  line.replaceChildren(input);
  input.focus();
  input.select();
}

function remove(one) {
  forgetChat(one);
  if (one === chat) return startChat();
  paintChats();
  ($("chat-list").querySelector("button") ?? $("clear")).focus();
}

function exportChats() {
  const link = make("a"), url = URL.createObjectURL(new Blob([exported()], { type: "application/json" }));
  Object.assign(link, { href: url, download: `knapserve-${new Date().toISOString().slice(0, 10)}.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60000); // the download may begin later
}

async function importFile() {
  const [file] = $("file").files;
  if (!file) return;
  $("imported").textContent = await file.text().then((text) => importChats(file.name, text), () => `${file.name} cannot be read.`);
  $("file").value = ""; // the same file can be chosen again
  paintChats();
}

// Another tab has changed or deleted a conversation.
function followOtherTabs({ key }) {
  const id = key?.startsWith(CHATS) && key.slice(CHATS.length), one = chats.get(id);
  if (!id) return;
  const saved = readChat(key);
  if (!saved) {
    chats.delete(id);
    if (one) one.gone = true;
    if (one && one === chat) openChat(newChat());
  } else if (!one || sameMessages(one, saved)) {
    chats.set(id, Object.assign(one ?? saved, { title: saved.title, updated: saved.updated }));
  } else if (unfinished?.mine === one) { // the answer goes into a conversation of its own
    chats.set(id, saved);
    one.id = newChat().id;
    remember(one);
  } else {
    Object.assign(one, saved);
    if (one === chat) openChat(one);
  }
  paintChats();
}

// A page that is left keeps the text in the input, and the answer that it was receiving, or else the question.
function keepUnfinished() {
  const { mine, answer, messages } = unfinished ?? {}, begun = answer?.begun;
  const unsent = $("text").value || (answer && !begun && !answer.before ? messages.at(-1).content : "");
  stored("sessionStorage", (storage) => storage.setItem(UNSENT, unsent));
  if (!begun || mine.gone) return;
  answer.ending = "stopped";
  mine.title ||= titleOf(messages);
  writeChat(mine, [...messages, finished(answer)]);
  remember(mine);
}
