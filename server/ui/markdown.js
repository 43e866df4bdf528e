"use strict";
const REACH = 1000; // characters of markup that may precede a word
const ADDRESS = /[*_`~]*\]\([^)\n]*\)/y; // of a link, after its text
const TAGS = "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre strong table tbody td th thead tr ul";

const WEB = /^(?:https?|mailto):/i; // addresses that links may have; other links are text
// Formulas are shown as they are written: for Markdown, each is a word of HIDDEN. One that is not complete reaches to the end.
// Single dollars are pandoc's: within a line, close to the formula, and not before a digit.
const HIDDEN = "\uE000", FENCE = /\n[ \t>]*(?:```|~~~)/.source, INDENT = /^[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)*/.source;
const ANYTHING = `(?!${FENCE})[^]`, PARAGRAPH = `(?!\\n[ \\t>]*\\n|${FENCE})[^]`;
const tex = (open, inside, close) => `${open.source}(?:${inside}){0,2000}?(?:${close.source}|(?![^]))`;
const FORMULAS = new RegExp([
  INDENT + /(?<fence>`{3,}(?!.*`)|~{3,})[^]*?(?:\n[ \t>]*\k<fence>[`~]*[ \t]*$|(?![^]))/.source, // code has no formulas
  /(?<!`)(?<ticks>`+)(?!`).*?[^`\n]\k<ticks>(?!`)/.source,
  /https?:\/\/[^\s<>]+|\]\([^()\n]*\)|\\[\\$`]/.source, // nor have addresses and escaped characters
  `(?<formula>${[
    tex(/\\\[(?=[ \t]*\n)/, ANYTHING, /\\\]/), tex(/\$\$(?=[ \t]*\n)/, ANYTHING, /\$\$/), // a bracket that has a line of its own
    tex(/\\begin\{(?<name>[a-z]+\*?)\}/, ANYTHING, /\\end\{\k<name>\}/),
    tex(/\\\[/, PARAGRAPH, /\\\]/), tex(/\$\$/, PARAGRAPH, /\$\$/), tex(/\\\(/, PARAGRAPH, /\\\)/),
    /\$(?![\s$])(?:\\.|[^$\n\\])+(?<!\s)\$(?!\d)/.source,
  ].join("|")})`,
].join("|"), "gm");

// Returns a text of the same length. The marks of a quotation stay.
function hideFormulas(source) {
  return source.replace(FORMULAS, (found, ...more) => {
    const { formula } = more.at(-1), at = more.at(-3);
    if (!formula) return found;
    const quoted = found.includes("\n") && /^[\s*+-]*>/.test(source.slice(source.lastIndexOf("\n", at) + 1, at));
    return quoted ? found.replace(/\n[ \t]*>[> \t]*|[^]/g, (part) => (part.length > 1 ? part : HIDDEN)) : HIDDEN.repeat(found.length);
  });
}

const escaped = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

// Answers are untrusted. HTML in them is text, and images are links. DOMPurify lets nothing else through than these tags.
const SAFE = {
  ALLOWED_TAGS: TAGS.split(" "), ALLOWED_ATTR: ["href", "align", "start", "class"], ADD_URI_SAFE_ATTR: ["align", "start"],
  ALLOWED_URI_REGEXP: WEB, ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, RETURN_DOM_FRAGMENT: true,
};
marked.use({
  gfm: true, breaks: true,
  tokenizer: { html: () => undefined, tag: () => undefined },
  renderer: {
    link: ({ href, raw }) => (WEB.test(href) ? false : escaped(raw)), // false: as usual
    image: ({ href, text, raw }) => (WEB.test(href) ? `<a href="${escaped(href)}">${escaped(text || href)}</a>` : escaped(raw)),
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

function rendered(block) {
  const fragment = DOMPurify.sanitize(marked.parser([block]), SAFE);
  for (const link of fragment.querySelectorAll("a[href]")) Object.assign(link, { target: "_blank", rel: "noopener noreferrer nofollow" });
  for (const pre of fragment.querySelectorAll("pre")) codeBox(pre, pre.firstElementChild.className.replace("language-", ""));
  for (const element of fragment.children) element.dir = "auto";
  return fragment;
}

// The reasoning or the reply of an answer: its Markdown, and the tokens that it came in.
class Section {
  constructor(thought) {
    Object.assign(this, { thought, box: make(thought ? "details" : "div"), source: "", tokens: [], changed: false, nested: false });
    Object.assign(this, { from: 0, first: 0, part: null }); // what is not complete yet: its place, first token and element
    Object.assign(this, { links: Object.create(null), known: "{}" }); // link definitions of complete blocks; all, as text
    if (!thought) return;
    this.box.open = true;
    this.box.append(make("summary", "", "Reasoning"));
  }

  write(text, className) {
    this.tokens.push({ from: this.source.length, className });
    this.source += text.replaceAll("\r", ""); // marked would replace it, and all later places would be wrong
    this.changed = true;
  }

  flush() {
    if (!this.changed) return;
    this.changed = false;
    if (this.nested) return this.show([make("p", "own", this.source.slice(this.from))]);
    try {
      this.render();
    } catch { // thousands of nested quotations exceed the stack
      this.nested = this.changed = true;
      this.flush();
    }
  }

  // A block is complete once another one follows. Only what is not complete is rendered again.
  render() {
    const lexer = new marked.Lexer();
    Object.assign(lexer.tokens.links, this.links);
    const blocks = lexer.lex(hideFormulas(this.source.slice(this.from))), known = JSON.stringify(blocks.links);
    if (this.from && known !== this.known) return this.renderAgain();
    this.known = known;
    const last = blocks.findLastIndex(({ type }) => type !== "space");
    let open = last, from = this.from, content = [], complete = 0;
    // A number after a list may become the number of its next item.
    if (/^\s*\d+$/.test(blocks[last]?.raw)) open = Math.max(blocks.findLastIndex(({ type }) => type === "list"), 0);
    for (const [i, block] of blocks.slice(0, last + 1).entries()) {
      if (block.type !== "space" && block.type !== "def") content.push(this.coloured(rendered(block), block.raw, from));
      from += block.raw.length;
      if (i >= open || !content.length) continue;
      marked.walkTokens(blocks.slice(complete, i + 1), (token) => this.define(token));
      complete = i + 1;
      this.show(content);
      this.part = null;
      this.first = this.tokenAt(from, this.first);
      this.from = from;
      content = [];
    }
    if (content.length || this.part) this.show(content);
  }

  define({ type, tag, href, title }) {
    if (type === "def") this.links[tag] ??= { href, title };
  }

  // A new definition may turn brackets in complete blocks into links.
  renderAgain() {
    for (const part of this.box.querySelectorAll(".part")) part.remove();
    Object.assign(this, { from: 0, first: 0, part: null, links: Object.create(null) });
    this.render();
  }

  show(content) {
    this.part ??= this.box.appendChild(make("div", "part"));
    this.part.replaceChildren(...content);
  }

  tokenAt(place, token) {
    while (token + 1 < this.tokens.length && this.tokens[token + 1].from <= place) token += 1;
    return token;
  }

  // Gives each token an element of its own. Markup has none: every rendered word is looked up in the source, from left to right. Formulas are shown again.
  coloured(fragment, raw, from) {
    const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT), nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    let at = 0, token = this.tokenAt(from, this.first);
    for (const node of nodes.filter(({ data }) => data.trim())) {
      const spans = [];
      const put = (text, formula) => {
        token = this.tokenAt(from + at, token);
        const { className } = this.tokens[token], latest = spans.at(-1);
        if (latest?.token === token && latest.formula === formula) latest.firstChild.appendData(text);
        else spans.push(Object.assign(make("span", formula ? className + " formula" : className, text), { token, formula }));
      };
      for (const [word] of node.data.matchAll(/\s+|\uE000+|[^\s\uE000]+/g)) {
        const formula = word[0] === HIDDEN;
        ADDRESS.lastIndex = at;
        at += ADDRESS.exec(raw)?.[0].length ?? 0;
        const found = word.trim() || raw.startsWith(word, at) ? raw.indexOf(word, at) : -1;
        if (found < 0 || (found > at + REACH && !formula)) { put(word, false); continue; } // an entity, for example
        at = found;
        for (let rest = word; rest;) {
          token = this.tokenAt(from + at, token);
          const end = this.tokens[token + 1]?.from ?? Infinity, piece = rest.slice(0, end - from - at);
          put(formula ? this.source.substr(from + at, piece.length) : piece, formula);
          at += piece.length;
          rest = rest.slice(piece.length);
        }
      }
      node.replaceWith(...spans);
    }
    return fragment;
  }
}

// Writes the tokens of an answer into a message.
class Writer {
  constructor(box) { Object.assign(this, { box, sections: [], tokens: [] }); }

  write(text, className) {
    const thought = className.endsWith("thought");
    if (this.sections.at(-1)?.thought !== thought) this.sections.push(new Section(thought));
    this.sections.at(-1).write(text, className);
    this.tokens.push([text, className]);
  }

  flush() {
    for (const section of this.sections) {
      if (!section.box.isConnected) this.box.append(section.box);
      section.flush();
    }
  }
}
