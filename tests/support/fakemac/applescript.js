// A small AppleScript: the subset that a script for Keynote needs; everything else is a syntax error (-2741).
// compile(source) -> program, run(program, argv) -> the text osascript prints.
'use strict';
const { TABLES } = load('apple_events');
const { state, post } = load('world');
const { readLines, syntaxError } = load('applescript_words');

const KEYNOTE = TABLES.keynote;
const NO_TERMS = { properties: new Set(), classes: new Map(), enums: new Set() };
const CONSTANTS = ['yes', 'no', 'ask'];
const TOKENS = ['st', 'nd', 'rd', 'th', 'before']; // words of the language, no names (facts E2)

function keynoteTerms() {
  const terms = { properties: new Set(), classes: new Map(), enums: new Set([...KEYNOTE.export.as, ...KEYNOTE.export.options['image format'], ...Object.keys(KEYNOTE.export.options), ...KEYNOTE.alignments]) };
  for (const [name, cls] of Object.entries(KEYNOTE.classes)) {
    Object.keys(cls.properties).forEach((property) => terms.properties.add(property));
    if (!['application', 'rich text'].includes(name)) terms.classes.set(name, name);
    for (const [element, plural] of Object.entries(cls.elements)) { terms.classes.set(element, element); terms.classes.set(plural, element); }
  }
  return terms;
}

class Parser {
  constructor(lines) {
    Object.assign(this, { lines, line: 0, at: 0, loops: 0, terms: NO_TERMS });
  }

  get tokens() { return this.line < this.lines.length ? this.lines[this.line].tokens : []; }
  get place() { return this.lines[Math.min(this.line, this.lines.length - 1)].place; }
  peek(ahead = 0) { return this.tokens[this.at + ahead]; }
  atEnd() { return this.at >= this.tokens.length; }
  is(...words) {
    return words.every((word, index) => {
      const token = this.peek(index);
      return token && !token.quoted && token.type !== 'string' && String(token.text).toLowerCase() === word.toLowerCase();
    });
  }
  take(phrase) {
    const words = phrase.split(' ');
    if (!this.is(...words)) return false;
    this.at += words.length;
    return true;
  }
  expect(phrase) {
    if (!this.take(phrase)) throw this.wrong(`Expected “${phrase}”`);
  }
  wrong(message) {
    const token = this.peek();
    const found = !token ? 'end of line' : token.type === 'name' ? 'identifier' : token.type === 'string' ? 'string' : token.type === 'number' ? 'number' : `“${token.text}”`;
    return syntaxError(`${message} but found ${found}.`, this.place);
  }
  name() {
    const token = this.peek();
    if (!token || token.type !== 'name') throw this.wrong('Expected identifier');
    const isTaken = [...TOKENS, ...this.terms.properties, ...this.terms.classes.keys()].includes(token.text.toLowerCase());
    if (isTaken && !token.quoted) throw this.wrong('Expected variable name');
    this.at += 1;
    return token.text;
  }
  endLine() {
    if (!this.atEnd()) throw this.wrong('Expected end of line');
    this.line += 1;
    this.at = 0;
  }

  // The longest of these terms that stands here.
  term(candidates) {
    const known = [...candidates];
    for (let length = 4; length > 0; length -= 1) {
      const words = [];
      for (let index = 0; index < length; index += 1) {
        const token = this.peek(index);
        if (!token || token.quoted || !['name', 'number'].includes(token.type)) break;
        words.push(String(token.text));
      }
      const text = words.join(' ');
      const found = words.length === length && known.find((candidate) => candidate.toLowerCase() === text.toLowerCase());
      if (found) { this.at += length; return found; }
    }
    return null;
  }

  // --- statements ---

  program() {
    const handlers = {};
    const body = [];
    while (this.line < this.lines.length) {
      if (this.take('on run')) {
        const parameter = this.atEnd() ? null : this.name();
        this.endLine();
        handlers.run = { parameter, body: this.block('run') };
      } else if (this.is('on')) {
        throw this.wrong('Expected “run”');
      } else {
        body.push(this.statement());
      }
    }
    return { handlers, body };
  }

  block(...ends) {
    const body = [];
    while (!this.is('end') && !this.is('else') && !this.is('on', 'error')) {
      if (this.line >= this.lines.length) throw this.wrong('Expected “end”');
      body.push(this.statement());
    }
    if (this.is('end')) {
      this.take('end');
      if (!ends.some((end) => this.take(end)) && !this.atEnd()) throw this.wrong(`Expected “end ${ends[0]}”`);
      this.endLine();
    }
    return body;
  }

  withTerms(terms, work) {
    const before = this.terms;
    this.terms = terms;
    try { return work(); } finally { this.terms = before; }
  }

  statement() {
    const place = this.place;
    const made = this.bareStatement();
    return { ...made, place };
  }

  bareStatement() {
    if (this.take('tell')) return this.tell();
    if (this.take('using terms from')) return this.usingTerms();
    if (this.take('with timeout')) return this.timeout();
    if (this.take('try')) return this.tryBlock();
    if (this.take('if')) return this.ifBlock();
    if (this.take('repeat')) return this.repeat();
    const made = this.simple();
    this.endLine();
    return made;
  }

  simple() {
    if (this.take('set')) return this.assignment();
    if (this.take('return')) return { do: 'return', value: this.atEnd() ? null : this.expression() };
    if (this.take('get')) return { do: 'value', value: this.expression() };
    if (this.loops && this.take('exit repeat')) return { do: 'exit' };
    if (this.take('error')) return this.raise();
    if (this.take('delay')) return { do: 'delay', seconds: this.expression() };
    if (this.take('log')) return { do: 'log', value: this.expression() };
    for (const command of ['activate', 'launch', 'quit']) if (this.take(command)) return { do: 'command', command, direct: this.atEnd() ? null : this.expression() };
    for (const command of ['close', 'delete', 'save', 'export', 'open']) {
      if (this.terms !== NO_TERMS && this.take(command)) return this.command(command);
    }
    return { do: 'value', value: this.expression() };
  }

  tell() {
    const target = this.expression();
    const terms = target.kind === 'application' ? this.termsOf(target) || this.terms : this.terms;
    if (this.take('to')) return this.withTerms(terms, () => { const body = [this.simple()]; this.endLine(); return { do: 'tell', target, body }; });
    this.endLine();
    return { do: 'tell', target, body: this.withTerms(terms, () => this.block('tell')) };
  }

  // The dictionary of an application that is named in the script; null when the name is only known at run time.
  termsOf(target) {
    if (target.name.kind !== 'literal') return null;
    const app = state().apps.find((one) => one[target.by === 'id' ? 'bundle_id' : 'name'] === target.name.value);
    // By a name that nothing has macOS opens a chooser, and the script waits for a person.
    if (!app && target.by !== 'id') { post({ do: 'dialog', text: `Where is ${target.name.value}?` }); host.hang(); }
    if (!app) throw syntaxError(`Can’t get application ${target.by === 'id' ? 'id ' : ''}"${target.name.value}".`, this.place, -1728);
    return app.name === 'Keynote' ? keynoteTerms() : NO_TERMS;
  }

  usingTerms() {
    const target = this.expression();
    const terms = target.kind === 'application' && this.termsOf(target);
    if (!terms) throw this.wrong('Expected application');
    this.endLine();
    return { do: 'group', body: this.withTerms(terms, () => this.block('using terms from')) };
  }

  timeout() {
    this.take('of');
    const seconds = this.expression();
    if (!this.take('seconds')) this.expect('second');
    this.endLine();
    return { do: 'timeout', seconds, body: this.block('timeout') };
  }

  tryBlock() {
    this.endLine();
    const body = this.block('try');
    const made = { do: 'try', body, handler: [], message: null, number: null };
    if (this.take('on error')) {
      if (!this.atEnd() && !this.is('number')) made.message = this.name();
      if (this.take('number')) made.number = this.name();
      this.endLine();
      made.handler = this.block('try', 'error');
    }
    return made;
  }

  ifBlock() {
    const test = this.expression();
    this.expect('then');
    if (!this.atEnd()) { const body = [this.simple()]; this.endLine(); return { do: 'if', test, body, otherwise: [] }; }
    this.endLine();
    const body = this.block('if');
    let otherwise = [];
    if (this.take('else')) {
      if (this.take('if')) otherwise = [this.ifBlock()];
      else { this.endLine(); otherwise = this.block('if'); }
    }
    return { do: 'if', test, body, otherwise };
  }

  repeat() {
    const made = { do: 'repeat' };
    if (this.take('with')) {
      made.variable = this.name();
      if (this.take('in')) made.list = this.expression();
      else { this.expect('from'); made.from = this.expression(); this.expect('to'); made.to = this.expression(); }
    } else if (this.take('while')) {
      made.test = this.expression();
    } else if (!this.atEnd()) {
      made.times = this.expression();
      this.take('times');
    }
    this.endLine();
    this.loops += 1;
    made.body = this.block('repeat');
    this.loops -= 1;
    return made;
  }

  raise() {
    const message = this.is('number') ? { kind: 'literal', value: '' } : this.expression();
    return { do: 'raise', message, number: this.take('number') ? this.expression() : { kind: 'literal', value: -2700 } };
  }

  assignment() {
    const target = this.primary();
    if (!['variable', 'property'].includes(target.kind)) throw this.wrong('Expected variable name or property');
    this.expect('to');
    return { do: 'set', target, value: this.expressionOrTerm() };
  }

  command(command) {
    const made = { do: 'command', command, direct: this.primary() };
    if (command === 'close' && this.take('saving')) made.saving = this.term(CONSTANTS);
    if (command === 'save' && this.take('in')) made.in = this.primary();
    if (command === 'export') {
      this.expect('to');
      made.to = this.primary();
      this.expect('as');
      made.as = this.term(this.terms.enums);
      if (!made.as) throw this.wrong('Expected class name');
      if (this.take('with properties')) made.properties = this.record();
    }
    return made;
  }

  // --- expressions, loosest first ---

  expression() { return this.either(); }

  chain(next, operators) {
    let left = next();
    for (;;) {
      const operator = Object.keys(operators).find((phrase) => this.take(phrase));
      if (!operator) return left;
      left = { kind: 'operation', operator: operators[operator], left, right: next() };
    }
  }

  either() { return this.chain(() => this.both(), { or: 'or' }); }
  both() { return this.chain(() => this.negation(), { and: 'and' }); }
  negation() { return this.take('not') ? { kind: 'not', value: this.negation() } : this.comparison(); }
  comparison() {
    return this.chain(() => this.joined(), { 'is not equal to': '≠', 'is equal to': '=', 'is greater than': '>', 'is less than': '<', 'is not': '≠', is: '=', equals: '=', '=': '=', '≠': '≠',
      '<=': '≤', '>=': '≥', '≤': '≤', '≥': '≥', '<': '<', '>': '>', contains: 'contains', 'starts with': 'starts', 'begins with': 'starts', 'ends with': 'ends' });
  }
  joined() { return this.chain(() => this.sum(), { '&': '&' }); }
  sum() { return this.chain(() => this.product(), { '+': '+', '-': '-' }); }
  product() { return this.chain(() => this.converted(), { '*': '*', '/': '/', div: 'div', mod: 'mod' }); }
  converted() {
    let value = this.primary();
    while (this.is('as')) {
      this.take('as');
      const type = this.term(['text', 'string', 'integer', 'number', 'real', 'list', 'boolean', 'alias']);
      if (!type) throw this.wrong('Expected class name');
      value = { kind: 'as', value, type };
    }
    return value;
  }

  primary() {
    const token = this.peek();
    if (!token) throw this.wrong('Expected expression');
    if (token.type === 'string' || token.type === 'number') { this.at += 1; return { kind: 'literal', value: token.text }; }
    if (this.take('-')) return { kind: 'negative', value: this.primary() };
    if (this.take('(')) { const value = this.expression(); this.expect(')'); return value; }
    if (this.is('{')) return this.record();
    return this.words();
  }

  words() {
    if (this.take('true')) return { kind: 'literal', value: true };
    if (this.take('false')) return { kind: 'literal', value: false };
    if (this.take('missing value')) return { kind: 'literal', value: null };
    if (this.take('application id')) return { kind: 'application', by: 'id', name: this.primary() };
    if (this.take('application')) return { kind: 'application', by: 'name', name: this.primary() };
    if (this.take('POSIX file')) return { kind: 'file', value: this.primary() };
    if (this.take('POSIX path of')) return { kind: 'path', value: this.primary() };
    if (this.take('item')) { const index = this.primary(); this.expect('of'); return { kind: 'item', index, list: this.primary() }; }
    if (this.take('first item of')) return { kind: 'item', index: { kind: 'literal', value: 1 }, list: this.primary() };
    if (this.take('last item of')) return { kind: 'item', index: { kind: 'literal', value: -1 }, list: this.primary() };
    if (this.take('count of') || this.take('number of') || this.take('length of') || this.take('count')) return { kind: 'count', value: this.primary() };
    if (this.take('exists')) return { kind: 'exists', value: this.primary() };
    if (this.take('make new')) return this.make();
    if (this.take('it')) return { kind: 'it' };
    return this.reference() || { kind: 'variable', name: this.name() };
  }

  make() {
    const className = this.term(this.terms.classes.keys());
    if (!className) throw this.wrong('Expected class name');
    const made = { kind: 'make', className: this.terms.classes.get(className), at: null, properties: null };
    if (this.take('at')) { this.take('end of') || this.take('beginning of') || this.take('end'); made.at = this.atEnd() || this.is('with') ? null : this.primary(); }
    if (this.take('with properties')) made.properties = this.record();
    return made;
  }

  // Something of the application: a property, an element, all elements.
  reference() {
    const front = this.take('front') || this.take('first') ? 1 : this.take('last') ? -1 : null;
    const every = front === null && this.take('every');
    const property = front === null && !every && this.propertyTerm();
    if (property) return { kind: 'property', name: property, of: this.owner() };
    const word = this.term(this.terms.classes.keys());
    if (!word) {
      if (front !== null || every) throw this.wrong('Expected class name');
      return null;
    }
    const element = this.terms.classes.get(word);
    if (front !== null) return { kind: 'element', element, by: 'index', value: { kind: 'literal', value: front }, of: this.owner() };
    if (every || word !== element) return { kind: 'element', element, by: 'every', value: null, of: this.owner() };
    const by = this.take('id') ? 'id' : this.take('named') ? 'name' : this.take('index') ? 'index' : null;
    const value = this.chosen();
    return { kind: 'element', element, by, value, of: this.owner() };
  }

  // Which element: a number, a name in quotes, a variable or something in brackets. Not a term: `slide size` is none.
  chosen() {
    const token = this.peek();
    const isTerm = token && token.type === 'name' && [...this.terms.properties, ...this.terms.classes.keys()].includes(token.text);
    if (!token || isTerm) throw this.wrong('Expected expression');
    if (['number', 'string'].includes(token.type) || token.text === '(' || token.text === '-' || this.is('item')) return this.primary();
    return { kind: 'variable', name: this.name() };
  }

  propertyTerm() {
    const here = this.at;
    const found = this.term(this.terms.properties);
    if (!found) return null;
    // A class with an index reads as the element (`slide 1`), a longer class name wins (`slide layout`).
    const after = this.at;
    this.at = here;
    const asClass = this.term(this.terms.classes.keys());
    if (asClass && this.at >= after) { this.at = here; return null; }
    this.at = after;
    return found;
  }

  owner() { return this.take('of') || this.take('in') ? this.primary() : null; }

  record() {
    this.expect('{');
    const items = [];
    const pairs = [];
    while (!this.take('}')) {
      const key = this.recordKey();
      if (key) pairs.push([key, this.expressionOrTerm()]);
      else items.push(this.expression());
      if (!this.is('}')) this.expect(',');
    }
    return pairs.length ? { kind: 'record', pairs } : { kind: 'list', items };
  }

  recordKey() {
    const here = this.at;
    const key = this.term([...this.terms.properties, ...this.terms.enums]) || (this.peek() && this.peek().type === 'name' ? this.name() : null);
    if (key && this.take(':')) return key;
    // Two words before the colon that are no term of the dictionary: it does not compile (facts E7).
    if (key && this.peek() && this.peek().type === 'name' && this.peek(1) && this.peek(1).text === ':') throw this.wrong('Expected “,” or “}”');
    this.at = here;
    return null;
  }

  expressionOrTerm() {
    const word = this.term(this.terms.enums);
    return word ? { kind: 'literal', value: word } : this.expression();
  }
}

function compile(source) {
  return new Parser(readLines(source)).program();
}

module.exports = { compile, run: (program, argv) => load('applescript_run').run(program, argv) };
