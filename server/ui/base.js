"use strict";
const $ = (id) => document.getElementById(id);

function make(tag, className = "", text = "") {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}

// Sets a text only if it changes, to avoid layout.
const setText = (element, text) => { if (element.textContent !== String(text)) element.textContent = text; };
const number = (value, digits = 1) => value == null || !isFinite(value) ? "–" : value.toFixed(value < 100 ? digits : 0);
const percent = (part, whole) => whole ? `${part === whole ? 100 : Math.min(99, Math.round(100 * part / whole))} %` : "–";

function button(label, className, call) {
  const element = make("button", className, label);
  element.type = "button";
  element.addEventListener("click", call);
  return element;
}

// A touch screen's keyboard has no Shift+Enter: its Enter breaks the line, and a button sends.
const touch = () => matchMedia("(pointer: coarse)").matches;
const sends = (event) => event.key === "Enter" && !event.isComposing && (event.ctrlKey || event.metaKey || !(event.shiftKey || touch()));

const sentence = (text) => (/[.!?]$/.test(text) ? text : text + ".");

// Copies a text, and says so on the button for a moment. Without HTTPS, only the old command works.
async function copy(text, element) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", "unseen");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    element.focus({ preventScroll: true });
  }
  element.classList.add("copied");
  $("announcement").textContent = "Copied.";
  setTimeout(() => {
    element.classList.remove("copied");
    if ($("announcement").textContent === "Copied.") $("announcement").textContent = "";
  }, 1500);
}

// Puts code into a box with a button that copies it. The words around the code are CSS, so that a selection has only the code.
function codeBox(pre, language) {
  const box = make("div", "code"), copier = button("", "copy", () => copy(pre.textContent.replace(/\n$/, ""), copier));
  copier.setAttribute("aria-label", "Copy code");
  box.dataset.language = language;
  pre.firstElementChild.tabIndex = 0;
  pre.replaceWith(box);
  box.append(copier, pre);
  return box;
}
