// The fake /usr/bin/osascript: options, script, arguments -> the script's result on stdout, errors in osascript's own form.
// The scripts run unmodified in a context of their own that has only JXA's names (the fact sheet 6.3).
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const vm = require('vm');
const { spawnSync } = require('child_process');

const folder = process.env.FAKEMAC_FOLDER;
const python = process.env.FAKEMAC_PYTHON;
const USAGE = 'usage: osascript [-l language] [-e script] [-i] [-s {ehso}] [programfile] [argument ...]';
const now = () => performance.timeOrigin + performance.now();

// --- the world ---

const file = (name) => path.join(folder, name);
const append = (name, line) => fs.appendFileSync(file(name), JSON.stringify(line) + '\n');
// Replaced as a whole, so another inode is another state; a script reads it thousands of times.
let seen = { inode: null, text: '', state: null };
function readState() {
  const descriptor = fs.openSync(file('desktop.json'));
  const { ino: inode, mtimeMs } = fs.fstatSync(descriptor);
  if (seen.inode !== `${inode} ${mtimeMs}`) {
    const text = fs.readFileSync(descriptor, 'utf8');
    seen = { inode: `${inode} ${mtimeMs}`, text, state: JSON.parse(text) };
  }
  fs.closeSync(descriptor);
  return seen.state;
}

function runPython(...words) {
  const done = spawnSync(python, ['-I', '-S', path.join(__dirname, 'run.py'), folder, ...words], { encoding: 'utf8' });
  if (done.status !== 0) throw new Error(`fakemac: ${words[0]}: ${done.stderr}`);
}

// Settled: reading the state first applies everything posted so far. Only world.py changes the state;
// the tests' own process is asked to.
function askForSettling() {
  const settler = fs.openSync(file('settler'), fs.constants.O_WRONLY | fs.constants.O_NONBLOCK);
  fs.writeSync(settler, `${folder}\n`);
  fs.closeSync(settler);
}
function settledState() {
  let asked = -Infinity;
  for (const until = now() + 20000; now() < until;) {
    const state = readState();
    const posted = fs.existsSync(file('events.jsonl')) ? fs.statSync(file('events.jsonl')).size : 0;
    if (posted === state.settled_bytes && !state.pending.some((event) => event.due <= now())) return state;
    if (now() > asked + 50) {
      askForSettling();
      asked = now();
    }
    sleep(1);
  }
  throw new Error('fakemac: nobody settles the world');
}

let postedAt = -Infinity;
const post = (event) => {
  if (event.type !== undefined) postedAt = now();
  append('events.jsonl', { ...event, t: now() });
};
const sleep = (ms) => { if (ms > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms); };

// A blocked osascript ignores SIGTERM (facts B1): only SIGKILL ends this.
function hang() {
  process.on('SIGTERM', () => {});
  sleep(1);
  append('hanging.jsonl', { pid: process.pid });
  sleep(settledState().switches.hang_limit_s * 1000);
  finish(98, '', 'fakemac: nobody killed this osascript in all that time\n');
}

let output = '';
let errors = '';
const flush = () => {
  if (output) fs.writeSync(1, output);
  if (errors) fs.writeSync(2, errors);
  output = errors = '';
};
function finish(code, stdout = '', stderr = '') {
  output += stdout;
  errors += stderr;
  flush();
  // its last posts may be lost
  if (now() - postedAt < readState().switches.early_exits_dropped_ms) post({ do: 'note', kind: 'lost', what: { why: 'the process ended too soon' } });
  process.exit(code);
}

// The functions outside the context that its modules may call. Bytes travel as latin1 strings.
const host = {
  stateText: () => { settledState(); return seen.text; },
  postText: (text) => post(JSON.parse(text)),
  sleep, hang, now, runPython,
  warn: (text) => { errors += text; },
  crash: () => { flush(); process.kill(process.pid, 'SIGSEGV'); sleep(5000); },
  read: (name) => { try { return fs.readFileSync(name).toString('latin1'); } catch { return null; } },
  isThere: (name) => fs.existsSync(name),
  isFolder: (name) => fs.existsSync(name) && fs.statSync(name).isDirectory(),
  remove: (name) => { try { fs.unlinkSync(name); return true; } catch { return false; } },
  makeFolder: (name) => fs.mkdirSync(name),
  encode: (text, encoding) => Buffer.from(text, encoding).toString('latin1'),
  decode: (bytes, encoding) => Buffer.from(bytes, 'latin1').toString(encoding),
  environmentText: JSON.stringify(Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('FAKEMAC_')))),
  randomId: () => crypto.randomUUID().toUpperCase(),
};

// --- the context ---

// Names of V8 that JavaScriptCore's scripting context does not have, or that are not known to be there.
const NOT_IN_JXA = ['WebAssembly', 'SharedArrayBuffer', 'Atomics', 'escapeHTML'];

function makeContext() {
  const context = vm.createContext({});
  for (const name of NOT_IN_JXA) vm.runInContext(`delete globalThis.${name}`, context);
  const loaded = {};
  const load = (name) => {
    if (!(name in loaded)) {
      const module = { exports: {} };
      loaded[name] = module;
      const source = fs.readFileSync(path.join(__dirname, `${name}.js`), 'utf8');
      const wrapped = vm.runInContext(`(function (host, load, module) {${source}\n})`, context, { filename: `${name}.js` });
      wrapped(host, load, module);
    }
    return loaded[name].exports;
  };
  return { context, load };
}

// --- options ---

function parseArguments(argv) {
  const options = { language: 'AppleScript', snippets: [], file: null, args: [] };
  const words = [...argv];
  while (words.length && words[0].startsWith('-') && words[0] !== '-') {
    const word = words.shift();
    if (word === '--') break;
    const letter = word[1];
    if (!'lesi'.includes(letter)) finish(1, '', `osascript: illegal option -- ${letter}\n${USAGE}\n`);
    if (letter === 'i') continue;
    if (word.length === 2 && !words.length) finish(1, '', `osascript: option requires an argument -- ${letter}\n${USAGE}\n`);
    const value = word.length > 2 ? word.slice(2) : words.shift();
    if (letter === 'l') options.language = value;
    if (letter === 'e') options.snippets.push(value);
  }
  if (!options.snippets.length && words.length) options.file = words.shift();
  options.args = words;
  return options;
}

function readSource(options) {
  if (options.snippets.length) return { text: options.snippets.join('\n'), stdin: null };
  if (options.file !== null && options.file !== '-') {
    if (!fs.existsSync(options.file)) finish(1, '', `osascript: ${options.file}: No such file or directory\n`);
    return { text: fs.readFileSync(options.file, 'utf8'), stdin: null };
  }
  const text = fs.readFileSync(0).toString('utf8');
  return { text, stdin: crypto.createHash('sha256').update(text).digest('hex') };
}

// Every user can read arguments (`ps`), so a script gets its request in a private file. Returns its text for the tests.
function readRequest(options) {
  const strict = (why) => post({ do: 'note', kind: 'strict', what: { why } });
  if (options.args.some((word) => word.includes('{'))) strict('a request on the command line');
  const name = options.args.find((word) => word.endsWith('.json') && fs.existsSync(word));
  if (name === undefined) return null;
  if (fs.statSync(name).mode & 0o77) strict('others can read the request');
  return fs.readFileSync(name, 'utf8');
}

function scriptedFault(state, argv, source) {
  const fits = (fault) => fault.program === 'osascript' && fault.when.every((word) => argv.includes(word) || source.includes(word));
  const fault = state.faults.find(fits);
  if (!fault) return;
  if (fault.times !== null) { post({ do: 'use_fault', key: fault.key }); settledState(); }
  if (fault.hang) hang();
  if (fault.exit < 0) process.kill(process.pid, -fault.exit);
  finish(fault.exit, fault.stdout, fault.stderr && fault.stderr.replace(/\n*$/, '\n'));
}

// --- results and errors ---

function reportError(error, prefix) {
  const number = error && typeof error === 'object' && Number.isInteger(error.errorNumber) ? error.errorNumber : -2700;
  const text = prefix ? error.message : `Error: ${error}`; // AppleScript has the place before it, and no class of the error
  finish(1, '', `${prefix}execution error: ${text} (${number})\n`);
}

function runJavaScript(options, source, state) {
  const { context, load } = makeContext();
  const strict = (why) => post({ do: 'note', kind: 'strict', what: { why } });
  let result;
  try {
    load('jxa').install(context);
    let script;
    try {
      script = new vm.Script(source, { filename: options.file || 'script' });
    } catch (error) {
      // A syntax error is not an "execution error" line (facts B2).
      finish(1, '', `${options.file || '<stdin>'}: syntax error: Error on line 1: ${error} (-2700)\n`);
    }
    result = script.runInContext(context);
    const run = vm.runInContext('typeof run === "function" ? run : null', context);
    if (run) result = vm.runInContext('(function (run, args) { return run(JSON.parse(args)) })', context)(run, JSON.stringify(options.args));
  } catch (error) {
    end(load);
    reportError(error, '');
  }
  end(load);
  if (typeof result !== 'string') {
    // How a Mac prints anything but a string is not verified (facts 6.3.6), so scripts return strings.
    if (state.switches.strict) {
      strict(`the script returned ${result === undefined ? 'undefined' : typeof result}, not a string`);
      finish(1, '', 'fakemac strict: the script did not return a string\n');
    }
    result = result === undefined ? '' : String(result);
  }
  finish(0, `${result}\n`);
}

function end(load) {
  load('apple_events').endOfCall();
}

function runAppleScript(options, source) {
  const { load } = makeContext();
  let result;
  try {
    result = load('applescript').run(source, options.args);
  } catch (error) {
    if (!Number.isInteger(error.errorNumber)) throw error;
    end(load);
    reportError(error, '0:0: ');
  }
  end(load);
  finish(0, `${result}\n`);
}

function main(argv) {
  const options = parseArguments(argv);
  const { text, stdin } = readSource(options);
  append('calls.jsonl', { program: 'osascript', argv, stdin, pid: process.pid, t: now(), request: readRequest(options) });
  if (readState().triggers.some((one) => one.on.do === 'started')) post({ do: 'started', program: 'osascript' });
  const state = settledState();
  const span = state.latency_ms.osascript;
  if (span) sleep(span[0] + Math.random() * (span[1] - span[0]));
  scriptedFault(state, argv, text);
  if (options.language === 'JavaScript') return runJavaScript(options, text, state);
  if (options.language === 'AppleScript') return runAppleScript(options, text);
  return finish(1, '', `osascript: no such component "${options.language}".\n`);
}

main(process.argv.slice(2));
