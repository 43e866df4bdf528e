"use strict";
const WINDOW = { rounds: 8, seconds: 0.1 }; // minimum that a point of the curves averages over
const COPIES = { lookup: "copied from the text so far", prediction: "copied from the expected answer" }; // drafts without a pass

const copied = (round) => (round.drafted && round.source in COPIES ? round.source : null);

// The rounds of one answer and its figures.
class Answer {
  // `before`: the text that is continued.
  constructor(drafting, again = false, before = "") {
    Object.assign(this, { drafting, again, before, text: before, marks: [], stretches: [], round: null, alone: 0, figures: null, ending: null });
    Object.assign(this, { tokens: 0, drafted: 0, accepted: 0, copied: 0, acceptedCopies: 0, points: [], start: 0 });
  }

  add(round, now) {
    this.tokens += round.tokens.length; this.drafted += round.drafted; this.accepted += round.accepted;
    if (copied(round)) { this.copied += round.drafted; this.acceptedCopies += round.accepted; }
    this.marks.push({ at: now, context: round.context, tokens: this.tokens, drafted: this.drafted, accepted: this.accepted });
    this.point(this.marks.length - 1);
    if (this.round) this.stretch(round);
    this.round = round;
  }

  // Adds a point of the curves, averaged over several rounds to smooth them.
  point(i) {
    const marks = this.marks, mark = marks[i];
    while (this.start + 1 <= i - WINDOW.rounds && mark.at - marks[this.start + 1].at >= WINDOW.seconds) this.start += 1;
    const from = marks[this.start], seconds = mark.at - from.at, tries = mark.drafted - from.drafted;
    if (i < WINDOW.rounds || seconds < WINDOW.seconds) return;
    const share = tries ? (mark.accepted - from.accepted) / tries : null;
    this.points.push({ context: mark.context, rate: (mark.tokens - from.tokens) / seconds, share });
  }

  // Rounds with one source of drafts, a plan or a kind of copies, form a stretch. It includes up to eight rounds without a draft;
  // nine are plain decoding.
  stretch(round) {
    const latest = this.stretches.at(-1), drafts = round.plan || copied(round);
    this.alone = drafts ? 0 : this.alone + 1;
    const source = drafts || (this.alone > 8 || !latest ? null : latest.source);
    const now = latest && latest.source === source ? latest : { source, from: round.context, tokens: 0, rounds: 0, drafted: 0, accepted: 0 };
    if (now !== latest) this.stretches.push(now);
    now.to = round.context + round.tokens.length;
    now.rounds += 1; now.tokens += round.tokens.length; now.drafted += round.drafted; now.accepted += round.accepted;
  }

  // Tokens after the first round, which includes the prompt.
  get timed() { return this.marks.length ? this.tokens - this.marks[0].tokens : 0; }
  get seconds() {
    const rate = this.figures && this.figures.tokens_per_second;
    return rate ? this.timed / rate : this.marks.length ? this.marks.at(-1).at - this.marks[0].at : 0;
  }
  get rate() { return this.seconds > 0 ? this.timed / this.seconds : NaN; }
  get complete() { return this.ending !== "stopped" && this.ending !== "error"; }
  get begun() { return this.text !== this.before || !!this.thought; }
  // Whether a conversation keeps the answer. One that is complete may be empty.
  get counts() { return this.complete || this.begun; }
}
