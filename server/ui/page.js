"use strict";
// Repaints with the next frame, and at most every `pace` milliseconds unless urgent.
function repaint(urgent = false) {
  if (frame || timer && !urgent) return;
  const wait = urgent ? 0 : painted + pace - performance.now();
  clearTimeout(timer);
  timer = wait > 0 ? setTimeout(() => { timer = null; repaint(true); }, wait) : null;
  frame = timer ? null : requestAnimationFrame(paint);
}

// The curves come first: they read sizes, and reading sizes after a change forces a layout.
function paint() {
  frame = null;
  painted = performance.now();
  if (newest) rates[newest.drafting ? "draft" : "plain"] = newest.rate;
  paintCurves();
  paintSpeed();
  paintFigures();
  paintPlans();
  if (writer) writer.flush();
  if (!running) paintSnippet();
  follow();
  pace = Math.max(PACE, 5 * (performance.now() - painted));
}

function showLook() {
  applyLook({ theme: $("theme").value, colours: $("colours").checked, panel: $("panel").checked });
  repaint(true);
}

const follow = () => { if (following) log.scrollTop = log.scrollHeight; };

$("form").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
$("text").addEventListener("keydown", (event) => {
  if (sends(event)) { event.preventDefault(); ask(); }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running && !event.isComposing && !$("chats").matches(":popover-open")) running.abort();
});
$("form").addEventListener("input", () => { saveSettings(); paintSnippet(); });
for (const id of ["theme", "colours", "panel"]) $(id).addEventListener("change", showLook);
for (const example of document.querySelectorAll(".examples button")) {
  example.addEventListener("click", () => { $("text").value = example.dataset.question ?? example.textContent; ask(); });
}
$("stop").addEventListener("click", () => running && running.abort());
$("again").addEventListener("click", compare);
$("clear").addEventListener("click", startChat);
$("key").addEventListener("change", () => { state("", "connecting"); checkHealth(); });
log.addEventListener("scroll", () => {
  const below = log.scrollHeight - log.scrollTop - log.clientHeight, atEnd = below < 40;
  const up = log.scrollTop < scrolled && below > 1; // a text that became shorter scrolls too, and stays at the end
  scrolled = log.scrollTop;
  leaving &&= !up;
  following = !up && !leaving && (following || atEnd);
});
// Scrolling by key or wheel starts with a delay; following would cancel it before its first scroll event.
const startScrollingUp = () => { leaving = log.scrollTop > 0; following &&= !leaving; };
log.addEventListener("wheel", (event) => { if (event.deltaY < 0 && !event.ctrlKey) startScrollingUp(); }, { passive: true });
log.addEventListener("keydown", (event) => { if (["ArrowUp", "PageUp", "Home"].includes(event.key)) startScrollingUp(); });
$("export").addEventListener("click", exportChats);
$("import").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", importFile);
addEventListener("storage", followOtherTabs);
addEventListener("pagehide", keepUnfinished);
addEventListener("resize", () => repaint());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showLook);
prepareTabs();
loadSettings();
showLook();
loadChats();
openChat(remembered() ?? newChat());
$("text").value = stored("sessionStorage", (storage) => storage.getItem(UNSENT)) ?? "";
if (touch()) $("keys").textContent = "Enter: new line. Send: the button.";
watchHealth();
focusInput();
