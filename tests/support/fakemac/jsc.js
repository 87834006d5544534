// Runs a JXA script on the fake Mac in JavaScriptCore: `jsc jsc.js`, started by jsc.py, which answers one JSON line with one.
'use strict';
const ask = (name, ...given) => { print(JSON.stringify([name, ...given])); return JSON.parse(readline()); };
const NAMES = ['stateText', 'postText', 'sleep', 'warn', 'read', 'isThere', 'isFolder', 'remove', 'encode', 'decode', 'randomId', 'runPython'];
const host = Object.fromEntries(NAMES.map((name) => [name, (...given) => ask(name, ...given)]));
const { folder, source, argv, environmentText } = ask('start');
Object.assign(host, { environmentText, now: () => Date.now() });

const loaded = {};
const load = (name) => {
  if (!(name in loaded)) {
    loaded[name] = { exports: {} };
    new Function('host', 'load', 'module', readFile(`${folder}/${name}.js`))(host, load, loaded[name]);
  }
  return loaded[name].exports;
};
load('jxa').install(globalThis);
(0, eval)(source);
ask('end', run(argv));
