// The global names of a JXA script.
'use strict';
const { ObjC, $, Ref } = load('bridge');
load('appkit');
load('coregraphics');
load('accessibility');
load('carbon');
load('vision');
const { Application } = load('specifiers');
const { strict } = load('world');

const shown = (value) => (typeof value === 'string' ? value : typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value));
const say = (...values) => host.warn(values.map(shown).join(' ') + '\n'); // to stderr (facts B1)

const NAMES = {
  ObjC, $, Ref, Application,
  console: { log: say, warn: say, error: say, info: say },
  delay: (seconds = 0) => {
    if (typeof seconds !== 'number' || Number.isNaN(seconds)) throw strict(`delay(${seconds})`);
    host.sleep(seconds * 1000);
  },
};

module.exports = {
  install(context) {
    for (const [name, value] of Object.entries(NAMES)) {
      Object.defineProperty(context, name, { value, writable: true, configurable: true, enumerable: false });
    }
  },
};
