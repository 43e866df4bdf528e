"use strict";
// The list of conversations, and the one on the screen.

function keep(one) {
  if (one.gone) return;
  const kept = saveChat(one);
  setText($("kept"), kept ? "" : "This browser does not keep conversations: its storage is full or blocked.");
  paintChats();
}

function openChat(next) {
  if (running) running.abort();
  chat = next;
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
  addAnswerTools(box, said.content, at);
}

function startChat() {
  openChat(newChat());
  focusInput();
}

function paintChats() {
  const sorted = [...chats.values()].sort((a, b) => b.updated - a.updated);
  $("chat-list").replaceChildren(...sorted.map(chatLine));
  $("no-chats").hidden = sorted.length > 0;
}

function chatLine(one) {
  const line = make("li");
  const opener = button(one.title, "title", () => { if (one !== chat) openChat(one); $("chats").hidePopover(); focusInput(); });
  opener.title = one.title;
  if (one === chat) opener.setAttribute("aria-current", "true");
  const renamer = button("✎", "small", () => rename(line, one)), remover = button("", "small", () => {
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
    if (title) { one.title = title; writeChat(one, one.messages); }
    paintChats();
  };
  input.onblur = () => close(input.value.trim());
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.isComposing) close(input.value.trim());
    if (event.key === "Escape") { event.stopPropagation(); event.preventDefault(); close(""); }
  });
  line.replaceChildren(input);
  input.focus();
  input.select();
}

function remove(one) {
  forgetChat(one);
  if (one === chat) return startChat();
  paintChats();
  $("chat-list").querySelector("button").focus();
}

// Another tab has changed a conversation. The one on the screen stays as it is.
function followOtherTabs({ key }) {
  const id = key?.startsWith(CHATS) && key.slice(CHATS.length);
  if (!id || id === chat.id) return;
  const saved = readChat(key);
  if (saved) chats.set(id, saved); else chats.delete(id);
  paintChats();
}

// A page that is left keeps the answer that it was receiving.
function keepUnfinished() {
  const { mine, answer } = unfinished ?? {};
  if (!answer || !(answer.text || answer.thought) || mine.gone) return;
  answer.ending = "stopped";
  mine.title ||= titleOf(mine);
  writeChat(mine, [...mine.messages, finished(answer)]);
  remember(mine);
}
