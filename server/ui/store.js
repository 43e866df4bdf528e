"use strict";
// Conversations and settings in the browser's storage. Each conversation has an entry, so that saving one writes no other.
// Without storage, they last as long as the page.
const CHATS = "knapserve.chat.", SETTINGS = "knapserve.settings", OPEN = "knapserve.open", UNSENT = "knapserve.unsent";
const CLASSES = ["own", "drafted", "drafted lookup"].flatMap((kind) => [kind, kind + " thought"]);
const FIELDS = ["system", "temperature", "top_p", "limit", "seed", "others", "theme"]; // the API key is not stored
const SWITCHES = ["draft", "colours", "panel"];
const chats = new Map(); // by id

// Access to the storage itself may throw: browsers can forbid it.
function stored(kind, call) {
  try { return call(window[kind]); } catch { return null; }
}

const newChat = () => ({ id: Date.now().toString(36) + Math.random().toString(36).slice(2, 8), title: "", updated: 0, messages: [], last: null });

function isChat(saved) {
  const text = (message) => ["user", "assistant"].includes(message?.role) && typeof message.content === "string";
  return typeof saved?.title === "string" && Array.isArray(saved.messages) && saved.messages.length > 0 && saved.messages.every(text);
}

// Reads a conversation; null if there is none that can be read.
function readChat(key) {
  const saved = stored("localStorage", (storage) => JSON.parse(storage.getItem(key)));
  if (!isChat(saved)) return null;
  const { title, updated, messages } = saved;
  return { id: key.slice(CHATS.length), title, updated: Number(updated) || 0, messages, last: null };
}

function loadChats() {
  for (const key of stored("localStorage", (storage) => Object.keys(storage)) ?? []) {
    const chat = key.startsWith(CHATS) && readChat(key);
    if (chat) chats.set(chat.id, chat);
  }
}

const sameMessages = (one, other) => JSON.stringify(one.messages) === JSON.stringify(other.messages);

// Brings a conversation up to date with the storage. Another tab may have added to it.
function latest(chat) {
  const saved = readChat(CHATS + chat.id);
  return saved?.updated > chat.updated ? Object.assign(chat, saved) : chat;
}

const titleOf = (messages) => [...messages[0].content.replace(/\s+/g, " ")].slice(0, 60).join("");

// Returns whether the conversation will outlast the page.
function saveChat(chat) {
  chat.title ||= titleOf(chat.messages);
  chat.updated = Date.now();
  chats.set(chat.id, chat);
  return writeChat(chat, chat.messages);
}

function writeChat({ id, title, updated }, messages) {
  const text = JSON.stringify({ title, updated, messages });
  return stored("localStorage", (storage) => { storage.setItem(CHATS + id, text); return true; }) === true;
}

function forgetChat(chat) {
  chat.gone = true;
  chats.delete(chat.id);
  stored("localStorage", (storage) => storage.removeItem(CHATS + chat.id));
}

const FORMAT = "knapserve-conversations";

const exported = () => JSON.stringify({
  format: FORMAT, conversations: [...chats.values()].map(({ title, updated, messages }) => ({ title, updated, messages })),
});

// Adds the conversations of a file that are not here yet, and changes none. Returns a report.
function importChats(name, text) {
  let file = null;
  try { file = JSON.parse(text); } catch { return `${name} is damaged, or no JSON file. Nothing was imported.`; }
  if (file?.format !== FORMAT || !Array.isArray(file.conversations)) return `${name} is no export of conversations. Nothing was imported.`;
  const key = ({ messages }) => JSON.stringify(messages), here = new Set([...chats.values()].map(key));
  const readable = file.conversations.filter(isChat), added = readable.filter((one) => !here.has(key(one)) && here.add(key(one)));
  let kept = true;
  for (const { title, updated, messages } of added) {
    const chat = { ...newChat(), title: title || titleOf(messages) || "Untitled", updated: Math.min(Number(updated) || 0, Date.now()), messages };
    chats.set(chat.id, chat);
    kept = writeChat(chat, messages) && kept;
  }
  const unread = file.conversations.length - readable.length, known = readable.length - added.length;
  return [`${added.length} imported`, known && `${known} already here`, unread && `${unread} damaged`].filter(Boolean).join(", ")
    + (kept ? "." : ". This browser's storage is full or blocked: not all of them outlast this page.");
}

const remember = (chat) => stored("sessionStorage", (storage) => storage.setItem(OPEN, chat.id)); // a reload opens it again
const remembered = () => chats.get(stored("sessionStorage", (storage) => storage.getItem(OPEN)));

const savedSettings = () => stored("localStorage", (storage) => JSON.parse(storage.getItem(SETTINGS))) ?? {};

function saveSettings() {
  const values = [...FIELDS.map((id) => [id, $(id).value]), ...SWITCHES.map((id) => [id, $(id).checked])];
  stored("localStorage", (storage) => storage.setItem(SETTINGS, JSON.stringify(Object.fromEntries(values))));
}

function loadSettings() {
  const saved = savedSettings(), offered = ({ options }, value) => !options || [...options].some((option) => option.value === value);
  for (const id of FIELDS) if (typeof saved[id] === "string" && offered($(id), saved[id])) $(id).value = saved[id];
  for (const id of SWITCHES) if (typeof saved[id] === "boolean") $(id).checked = saved[id];
}

// Sets the theme, and what is hidden. The style sheet follows these attributes.
function applyLook({ theme, colours, panel }) {
  const dark = theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  const hidden = [colours === false && "colours", panel === false && "panel"].filter(Boolean).join(" ");
  Object.assign(document.documentElement.dataset, { theme: dark ? "dark" : "light", hidden });
}
applyLook(savedSettings()); // before the first paint

// The text of an answer with its tokens' classes. Neighbours of one class are kept together.
function pack(tokens) {
  const packed = [];
  for (const [text, className] of tokens) {
    if (packed.at(-1)?.[1] === className) packed.at(-1)[0] += text; else packed.push([text, className]);
  }
  return packed;
}

function unpack({ content, tokens }) {
  const whole = Array.isArray(tokens) && tokens.every((token) => typeof token?.[0] === "string" && CLASSES.includes(token[1]));
  return whole ? tokens : [[content, "own"]];
}
