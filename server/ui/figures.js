"use strict";
const MAX_PLANS = 100; // lines of the table of plans

function paintSpeed() {
  const most = Math.max(rates.draft || 0, rates.plain || 0), ratio = rates.draft / rates.plain;
  for (const kind of ["draft", "plain"]) {
    setText($(kind + "-rate"), number(rates[kind]));
    $(kind + "-bar").style.width = most ? `${100 * (rates[kind] || 0) / most}%` : 0;
  }
  $("verdict").hidden = !isFinite(ratio);
  $("verdict").className = ratio < 1 ? "slower" : "";
  setText($("verdict"), `${number(ratio, 2)} × plain`);
  const other = most ? "Press Compare to repeat this question with drafting switched." : "No answer yet.";
  setText($("compared"), isFinite(ratio) ? "The same question, with and without drafting." : other);
}

function paintFigures() {
  const answer = shown ?? new Answer(true), round = answer.round;
  setText($("rate"), number(answer.rate));
  setText($("way"), shown ? shown.drafting ? ", drafting" : ", plain" : "");
  setText($("which"), newest === shown && !answer.again ? "This answer" : "The drafting answer");
  setText($("accepted"), percent(answer.accepted, answer.drafted));
  setText($("accepted-label"), answer.drafted ? `accepted, ${answer.accepted} of ${answer.drafted}` : "accepted of drafted");
  setText($("length"), number(answer.tokens / answer.marks.length, 2));
  setText($("context"), round ? round.context + round.tokens.length : "–");
  setText($("context-label"), `context${card && card.max_model_len ? ` of ${card.max_model_len}` : ""}, tokens`);
  setText($("predicted"), number(round && round.predicted_tpt));
  setText($("summary-link"), answer.marks.length > 1 ? `${number(answer.rate, 0)} tokens/s` : "Figures");
}

// A plan has one digit per sublayer and one for the head. 0: skipped. 1: the model's own weights. 2: a copy in fewer bits.
// 3: that copy, with attention to the first and last tokens only.
const layersOf = (plan) => (plan.length - 1) / 2;
const count = (plan, kind) => [...plan.slice(0, -1)].filter((cell, i) => i % 2 === kind && cell !== "0").length;
const planInWords = (plan) => `${count(plan, 0)} of ${layersOf(plan)} attention and ${count(plan, 1)} of ${layersOf(plan)} MLP sublayers`
  + (/[23]/.test(plan) ? `, ${plan.split(/[23]/).length - 1} parts in fewer bits` : "")
  + (plan.includes("3") ? `, ${plan.split("3").length - 1} over the first and last tokens only` : "");

// Draws a plan as cells: attention above, MLP below, the first layer left, the head right.
function strip(plan) {
  if (!plan || plan in COPIES) return make("span", "", COPIES[plan] ?? "plain decoding");
  const box = make("div", plan.length > 64 ? "cells dense" : "cells");
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", planInWords(plan));
  box.title = planInWords(plan);
  const kind = (i) => (i === plan.length - 1 ? "head" : i % 2 ? "mlp" : "attention");
  box.append(...[...plan].map((cell, i) => make("i", kind(i) + ["", " run", " run low", " run low window"][cell])));
  return box;
}

function planRow(stretch) {
  const line = make("tr");
  const cells = ["", strip(stretch.source), "", ""].map((content) => { const cell = make("td"); cell.append(content); return cell; });
  line.append(...cells);
  return line;
}

function paintPlans() {
  const stretches = shown ? shown.stretches : [], body = $("plans");
  if (body.of !== shown) { body.of = shown; body.drawn = 0; body.replaceChildren(); }
  while (body.drawn < stretches.length) { refresh(body, stretches[body.drawn - 1]); body.prepend(planRow(stretches[body.drawn++])); }
  while (body.children.length > MAX_PLANS) body.lastChild.remove();
  const now = stretches.at(-1);
  refresh(body, now);
  const layers = stretches.find(({ source }) => source && !(source in COPIES))?.source;
  setText($("layers"), layers ? `layers 1 to ${layersOf(layers)}, head` : "layers");
  setText($("described"), describePlan(now));
}

function describePlan(stretch) {
  if (!stretch) return "One line per plan of an answer, the newest on top.";
  if (!shown.drafting) return "Plain decoding: nothing is drafted in this answer.";
  const copies = shown.copied ? ` ${shown.acceptedCopies} of ${shown.copied} copied tokens were accepted; a copy needs no draft pass.` : "";
  if (!stretch.source) return "Nothing is drafted here: the policy expects plain decoding to be faster." + copies;
  if (stretch.source in COPIES) return copies.trim();
  return `The ${shown.ending ? "last draft ran" : "draft runs"} ${planInWords(stretch.source)}. The newest plan is on top.${copies}`;
}

function refresh(body, stretch) {
  if (!stretch || !body.firstChild) return;
  const cells = body.firstChild.children;
  setText(cells[0], `${stretch.from}–${stretch.to}`);
  setText(cells[2], percent(stretch.accepted, stretch.drafted));
  setText(cells[3], number(stretch.tokens / stretch.rounds));
}

function prepareCanvas(canvas) {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  const context = canvas.getContext("2d");
  if (canvas.width !== Math.floor(width * ratio)) canvas.width = width * ratio;
  if (canvas.height !== Math.floor(height * ratio)) canvas.height = height * ratio;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

// Limits the points to the pixels. Keeps every second, fourth, … point, so that the selection is stable as an answer grows.
function downsample(points, most) {
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(points.length / most)));
  return step === 1 ? points : points.filter((_, i) => i % step === 0 || i === points.length - 1);
}

function paintCurves() {
  const paper = prepareCanvas($("curves")), at = shown ? downsample(shown.points, paper.width) : [], drawn = at.length > 1;
  const top = 1.1 * Math.max(...at.map(({ rate }) => rate), rates.plain || 0);
  if (drawn) draw(paper, at, top);
  setText($("low"), drawn ? at[0].context : "");
  setText($("high"), drawn ? at.at(-1).context : "");
  setText($("top"), drawn ? `, to ${number(top, 0)}` : "");
  setText($("axis"), !drawn && shown && shown.ending ? "This answer is too short for curves." : "context, tokens");
}

function draw({ context, width, height }, at, top) {
  const { plain } = rates, style = getComputedStyle(document.documentElement);
  const x = (tokens) => (tokens - at[0].context) / (at.at(-1).context - at[0].context) * width;
  const y = (share) => height - 3 - share * (height - 6);
  const line = (name, places, dash = []) => {
    context.strokeStyle = style.getPropertyValue("--" + name); context.lineWidth = 1.5; context.setLineDash(dash); context.beginPath();
    places.forEach((place, i) => place && (i && places[i - 1] ? context.lineTo(...place) : context.moveTo(...place)));
    context.stroke();
  };
  for (const { from } of shown.stretches) if (from > at[0].context) line("edge", [[x(from), 0], [x(from), height]]);
  if (plain) line("plain", [[0, y(plain / top)], [width, y(plain / top)]], [2, 3]);
  line("drafted", at.map(({ context, share }) => share == null ? null : [x(context), y(share)]), [6, 3]);
  line("accent", at.map(({ context, rate }) => [x(context), y(rate / top)]));
}
