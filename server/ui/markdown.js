"use strict";
const REACH = 1000; // characters of markup that may precede a word
const ADDRESS = /[*_`~]*\]\([^)\n]*\)/y; // of a link, after its text
const TAGS = "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre strong table tbody td th thead tr ul";

const escaped = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

// Answers are untrusted. HTML in them is text, and images are links. DOMPurify lets nothing else through than these tags.
const SAFE = {
  ALLOWED_TAGS: TAGS.split(" "), ALLOWED_ATTR: ["href", "align", "start", "class"], ADD_URI_SAFE_ATTR: ["align", "start"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i, ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, RETURN_DOM_FRAGMENT: true,
};
marked.use({
  gfm: true, breaks: true,
  tokenizer: { html: () => undefined, tag: () => undefined },
  renderer: {
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

function rendered(block) {
  const fragment = DOMPurify.sanitize(marked.parser([block]), SAFE);
  for (const link of fragment.querySelectorAll("a[href]")) Object.assign(link, { target: "_blank", rel: "noopener noreferrer nofollow" });
  for (const pre of fragment.querySelectorAll("pre")) codeBox(pre, pre.firstElementChild.className.replace("language-", ""));
  return fragment;
}

// The reasoning or the reply of an answer: its Markdown, and the tokens that it came in.
class Section {
  constructor(thought) {
    Object.assign(this, { thought, box: make("div", thought ? "thought" : ""), source: "", tokens: [], changed: false, nested: false });
    Object.assign(this, { from: 0, first: 0, part: null }); // what is not complete yet: its place, first token and element
  }

  write(text, className) {
    this.tokens.push({ from: this.source.length, className });
    this.source += text.replaceAll("\r", " ");
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
    const blocks = marked.lexer(this.source.slice(this.from)), last = blocks.findLastIndex(({ type }) => type !== "space");
    let open = last, from = this.from, content = [];
    // A number after a list may become the number of its next item.
    if (/^\s*\d+$/.test(blocks[last]?.raw)) open = Math.max(blocks.findLastIndex(({ type }) => type === "list"), 0);
    for (const [i, block] of blocks.slice(0, last + 1).entries()) {
      if (block.type !== "space") content.push(this.coloured(rendered(block), block.raw, from));
      from += block.raw.length;
      if (i >= open || !content.length) continue;
      this.show(content);
      this.part = null;
      this.first = this.tokenAt(from, this.first);
      this.from = from;
      content = [];
    }
    if (content.length) this.show(content);
  }

  show(content) {
    this.part ??= this.box.appendChild(make("div", "part"));
    this.part.replaceChildren(...content);
  }

  tokenAt(place, token) {
    while (token + 1 < this.tokens.length && this.tokens[token + 1].from <= place) token += 1;
    return token;
  }

  // Gives each token an element of its own. Markup has none: every rendered word is looked up in the source, from left to right.
  coloured(fragment, raw, from) {
    const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT), nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    let at = 0, token = this.tokenAt(from, this.first);
    for (const node of nodes.filter(({ data }) => data.trim())) {
      const spans = [];
      const put = (text) => {
        token = this.tokenAt(from + at, token);
        if (spans.at(-1)?.token === token) spans.at(-1).firstChild.appendData(text);
        else spans.push(Object.assign(make("span", this.tokens[token].className, text), { token }));
      };
      for (const [word] of node.data.matchAll(/\s+|\S+/g)) {
        ADDRESS.lastIndex = at;
        at += ADDRESS.exec(raw)?.[0].length ?? 0;
        const found = word.trim() || raw.startsWith(word, at) ? raw.indexOf(word, at) : -1;
        if (found < 0 || found > at + REACH) { put(word); continue; } // an entity, for example
        at = found;
        for (let rest = word; rest;) {
          token = this.tokenAt(from + at, token);
          const end = this.tokens[token + 1]?.from ?? Infinity, piece = rest.slice(0, end - from - at);
          put(piece);
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
