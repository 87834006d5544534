// Runs what applescript.js compiled.
'use strict';
const events = load('apple_events');
const { state } = load('world');

class Return { constructor(value) { this.value = value; } }
class ExitRepeat {}

const isReference = (value) => value !== null && typeof value === 'object' && value.bundle !== undefined;
const isFile = (value) => value !== null && typeof value === 'object' && value.file !== undefined;

function fail(message, errorNumber) {
  return Object.assign(new Error(message), { isAppleScript: true, errorNumber });
}

// An app's error as AppleScript words it.
function fromApp(error, bundle) {
  if (!Number.isInteger(error.errorNumber) || error.isAppleScript) return error;
  const app = state().apps.find((one) => one.bundle_id === bundle);
  const plain = [-1743, -600].includes(error.errorNumber);
  return fail(plain ? error.message : `${app ? app.name : 'It'} got an error: ${error.message.replace("'", '’')}`, error.errorNumber);
}

class Machine {
  constructor() { Object.assign(this, { variables: {}, target: null, last: '' }); }

  // How long an application may take to answer; two minutes unless a script says otherwise.
  withTimeout(seconds, body) {
    const before = events.patience.seconds;
    events.patience.seconds = seconds;
    try { this.body(body); } finally { events.patience.seconds = before; }
  }

  body(statements) {
    for (const statement of statements) {
      try {
        this.statement(statement);
      } catch (error) {
        if (error instanceof Error && !error.place) error.place = statement.place;
        throw error;
      }
    }
  }

  statement(node) {
    const work = {
      tell: () => this.tell(node), group: () => this.body(node.body), timeout: () => this.withTimeout(this.number(node.seconds), node.body),
      value: () => { this.last = this.plain(this.value(node.value)); }, set: () => this.assign(node), return: () => { throw new Return(node.value ? this.plain(this.value(node.value)) : ''); },
      exit: () => { throw new ExitRepeat(); }, raise: () => { throw fail(this.text(this.value(node.message)), this.value(node.number)); },
      delay: () => host.sleep(1000 * this.value(node.seconds)), log: () => host.warn(`${this.text(this.plain(this.value(node.value)))}\n`),
      try: () => this.attempt(node), if: () => this.body(this.plain(this.value(node.test)) === true ? node.body : node.otherwise), repeat: () => this.repeat(node),
      command: () => this.command(node),
    };
    work[node.do]();
  }

  tell(node) {
    const before = this.target;
    this.target = this.value(node.target);
    if (!isReference(this.target)) throw fail('Can’t get that object.', -1728);
    try { this.body(node.body); } finally { this.target = before; }
  }

  attempt(node) {
    try {
      this.body(node.body);
    } catch (error) {
      if (!(error instanceof Error) || !Number.isInteger(error.errorNumber)) throw error;
      if (node.message) this.variables[node.message] = error.message;
      if (node.number) this.variables[node.number] = error.errorNumber;
      this.body(node.handler);
    }
  }

  repeat(node) {
    const rounds = node.list ? this.listOf(this.plain(this.value(node.list))) : node.from ? range(this.number(node.from), this.number(node.to)) : node.times ? range(1, this.number(node.times)) : null;
    try {
      if (rounds) rounds.forEach((item) => { if (node.variable) this.variables[node.variable] = item; this.body(node.body); });
      else while (!node.test || this.plain(this.value(node.test)) === true) this.body(node.body);
    } catch (signal) {
      if (!(signal instanceof ExitRepeat)) throw signal;
    }
  }

  isKeynote(target) { return isReference(target) && state().apps.some((app) => app.bundle_id === target.bundle && app.name === 'Keynote'); }
  number(node) { return this.convert(this.plain(this.value(node)), 'number'); }
  listOf(value) { return Array.isArray(value) ? value : [value]; }

  assign(node) {
    const value = this.value(node.value);
    if (node.target.kind === 'variable') {
      // The one name that is no term, and that Keynote wants for itself (facts E2).
      if (node.target.name === 'plain' && this.isKeynote(this.target)) throw fail('Keynote got an error: AppleEvent handler failed.', -10003);
      this.variables[node.target.name] = this.plain(value);
      return;
    }
    const reference = this.value(node.target);
    this.send(reference, (app) => events.set(app, reference.path, this.handle(app, value)));
  }

  // --- events ---

  send(reference, work) {
    if (!isReference(reference)) throw fail('Can’t make that into the expected type.', -1700);
    try {
      const app = events.gate(reference.bundle, { starts: true });
      events.objectsOf(app).bundle = reference.bundle;
      return work(app);
    } catch (error) {
      throw fromApp(error, reference.bundle);
    }
  }

  handle(app, value) {
    if (Array.isArray(value)) return value.map((one) => this.handle(app, one));
    return isReference(value) ? events.resolve(app, value.path) : value;
  }

  // The value of a reference is got when it is used; an object stays a reference to that object.
  plain(value) {
    if (!isReference(value) || !value.path.length || value.path[value.path.length - 1].fixed) return value;
    return this.send(value, (app) => this.refer(value.bundle, events.get(app, value.path)));
  }

  refer(bundle, found) {
    if (Array.isArray(found)) return found.map((one) => this.refer(bundle, one));
    if (events.isHandle(found)) return { bundle, path: [{ fixed: found }] };
    if (found !== null && typeof found === 'object' && 'x' in found) return [found.x, found.y];
    return found;
  }

  command(node) {
    const direct = node.direct ? this.value(node.direct) : this.target;
    if (!isReference(direct)) throw fail('Can’t get that object.', -1728);
    const parameters = {};
    for (const name of ['to', 'in']) if (node[name]) parameters[name] = this.fileOf(this.value(node[name]));
    if (node.as) parameters.as = node.as;
    if (node.saving) parameters.saving = node.saving;
    if (node.properties) parameters.withProperties = Object.fromEntries(node.properties.pairs.map(([key, value]) => [key, this.plain(this.value(value))]));
    this.last = this.send(direct, (app) => events.command(app, node.command === 'launch' ? 'activate' : node.command, this.directOf(app, direct, node.command), parameters)) || '';
  }

  directOf(app, direct, command) {
    if (!direct.path.length) return undefined;
    if (command === 'delete' && !events.exists(app, direct.path)) return undefined;
    return events.resolve(app, direct.path);
  }

  fileOf(value) {
    if (isFile(value)) return value.file;
    throw fail('Can’t make that into type file.', -1700);
  }

  // --- values ---

  value(node) {
    const work = {
      literal: () => node.value, variable: () => this.variable(node.name), list: () => node.items.map((item) => this.plain(this.value(item))),
      record: () => Object.fromEntries(node.pairs.map(([key, value]) => [key, this.value(value)])), negative: () => -this.plain(this.value(node.value)), not: () => !this.plain(this.value(node.value)),
      application: () => this.application(node), file: () => ({ file: this.text(this.plain(this.value(node.value))) }), path: () => this.fileOf(this.value(node.value)),
      item: () => this.item(node), count: () => this.count(this.value(node.value)), exists: () => this.exists(this.value(node.value)), make: () => this.make(node), it: () => this.target,
      property: () => this.under(node.of, { property: node.name }), element: () => this.element(node), as: () => this.convert(this.plain(this.value(node.value)), node.type),
      operation: () => this.operate(node),
    };
    return work[node.kind]();
  }

  variable(name) {
    if (!(name in this.variables)) throw fail(`The variable ${name} is not defined.`, -2753);
    return this.variables[name];
  }

  application({ by, name }) {
    const wanted = this.text(this.value(name));
    const { apps } = state();
    const found = apps.filter((app) => app[by === 'id' ? 'bundle_id' : 'name'] === wanted);
    const app = found.find((one) => one.pid !== null) || found[0];
    if (!app) throw fail(`Can’t get application ${by === 'id' ? 'id ' : ''}"${wanted}".`, -1728);
    return { bundle: app.bundle_id, path: [] };
  }

  under(of, step) {
    const owner = of ? this.value(of) : this.target;
    if (!isReference(owner)) throw fail('Can’t get that object.', -1728);
    return { bundle: owner.bundle, path: [...owner.path, step] };
  }

  element(node) {
    if (node.by === 'every') return this.under(node.of, { element: node.element, by: 'every' });
    const value = this.plain(this.value(node.value));
    const by = node.by || (typeof value === 'number' ? 'index' : 'name');
    return this.under(node.of, { element: node.element, by, value: by === 'index' && value >= 0 ? (value || NaN) - 1 : value }); // nothing is number 0
  }

  make(node) {
    const parent = node.at ? this.value(node.at) : this.target;
    if (!isReference(parent)) throw fail('Can’t get that object.', -1728);
    const place = parent.path[parent.path.length - 1];
    if (place && place.by === 'every' && place.element !== node.className) throw fromApp(fail('AppleEvent handler failed.', -10000), parent.bundle);
    const owner = place && place.by === 'every' ? { bundle: parent.bundle, path: parent.path.slice(0, -1) } : parent;
    return this.send(owner, (app) => {
      const given = node.properties && node.properties.pairs ? Object.fromEntries(node.properties.pairs.map(([key, value]) => [key, this.handle(app, this.value(value))])) : {};
      const at = owner.path.length ? events.resolve(app, owner.path) : undefined;
      return this.refer(owner.bundle, events.command(app, 'make', undefined, { new: node.className, at, withProperties: given }));
    });
  }

  item({ index, list }) {
    const items = this.value(list);
    // Nobody got it yet, so the app is asked for an item of it, and its points have none.
    if (isReference(items)) throw fail('Can’t get that object.', -1728);
    const at = this.plain(this.value(index));
    if (!Array.isArray(items) || at === 0 || Math.abs(at) > items.length) throw fail(`Can’t get item ${at}.`, -1728);
    return items[at > 0 ? at - 1 : items.length + at];
  }

  count(value) {
    if (isReference(value)) return this.send(value, (app) => events.count(app, value.path));
    return typeof value === 'string' ? [...value].length : value.length;
  }

  exists(value) { return isReference(value) ? this.send(value, (app) => events.exists(app, value.path)) : value !== undefined; }

  operate({ operator, left, right }) {
    const one = this.plain(this.value(left));
    if (operator === 'and' && one !== true) return false;
    if (operator === 'or' && one === true) return true;
    const two = this.plain(this.value(right));
    // What begins with neither a text nor a list becomes a list: 1 & "a" is {1, "a"}.
    if (operator === '&') return typeof one === 'string' ? one + this.asText(two) : [...this.listOf(one), ...this.listOf(two)];
    const same = JSON.stringify(one) === JSON.stringify(two); // two references to one object are equal (facts E3)
    const results = { and: () => two, or: () => two, '=': () => same, '≠': () => !same, '<': () => one < two, '>': () => one > two, '≤': () => one <= two, '≥': () => one >= two,
      contains: () => one.includes(two), starts: () => one.startsWith(two), ends: () => one.endsWith(two),
      '+': () => this.convert(one, 'number') + this.convert(two, 'number'), '-': () => one - two, '*': () => one * two, '/': () => one / two, div: () => Math.trunc(one / two), mod: () => one % two };
    return results[operator]();
  }

  convert(value, type) {
    if (type === 'text' || type === 'string') return this.asText(value);
    if (type === 'list') return this.listOf(value);
    if (type === 'boolean') return value === true || value === 'true';
    if (type === 'alias') return value;
    const number = Number(value);
    if (value === '' || Number.isNaN(number)) throw fail(`Can’t make "${this.text(value)}" into type ${type}.`, -1700);
    return type === 'integer' ? Math.round(number) : number;
  }

  // `as text`: a list without commas, a fraction as the system's language writes it; an object or a record does not convert.
  asText(value) {
    if (Array.isArray(value)) return value.map((item) => this.asText(item)).join('');
    if (value !== null && typeof value === 'object' && !isFile(value)) throw fail(`Can’t make ${this.text(value)} into type text.`, -1700);
    return typeof value === 'number' && ['de', 'fr'].includes(state().switches.language) ? String(value).replace('.', ',') : this.text(value);
  }

  text(value) {
    if (value === null || value === undefined) return 'missing value';
    if (Array.isArray(value)) return value.map((item) => this.text(item)).join(', ');
    if (isFile(value)) return `file ${value.file}`;
    if (isReference(value)) return describe(value);
    if (typeof value === 'object') return Object.entries(value).map(([key, item]) => `${key}:${this.text(item)}`).join(', ');
    return String(value);
  }
}

function describe(reference) {
  const last = reference.path[reference.path.length - 1];
  if (!last) return `application id "${reference.bundle}"`;
  const { fixed } = last;
  if (!fixed) return `${last.element || last.property} of application`;
  const parts = [fixed.shape === undefined ? '' : `${fixed.cls} ${fixed.shape + 1}`, fixed.slide === undefined ? '' : `slide ${fixed.slide + 1}`, fixed.document === undefined ? '' : `document id "${fixed.document}"`];
  return parts.filter(Boolean).join(' of ') || fixed.cls;
}

const range = (from, to) => Array.from({ length: Math.max(0, to - from + 1) }, (unused, index) => from + index);

function run(program, argv) {
  const machine = new Machine();
  const handler = program.handlers.run;
  if (handler && handler.parameter) machine.variables[handler.parameter] = [...argv];
  try {
    machine.body(handler ? handler.body : program.body);
  } catch (signal) {
    if (!(signal instanceof Return)) throw signal;
    return machine.text(signal.value);
  }
  return machine.last === '' || machine.last === null ? '' : machine.text(machine.last);
}

module.exports = { run };
