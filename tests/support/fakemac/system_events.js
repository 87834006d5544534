// The fake System Events, as far as it presses keys (facts F, 6.3.3). Its processes and windows are nobody's business here.
'use strict';
const { state, post, appleError } = load('world');
const { applicationProperty } = load('plain_app');

const MODIFIERS = { 'command down': 0x100000, 'shift down': 0x20000, 'option down': 0x80000, 'control down': 0x40000 };

function flagsOf(using = []) {
  return [using].flat().reduce((flags, name) => {
    if (!(name in MODIFIERS)) throw appleError("Can't convert types.", -1700);
    return flags | MODIFIERS[name];
  }, 0);
}

function keystroke(app, text, { using }) {
  if (typeof text !== 'string') throw appleError("Can't convert types.", -1700);
  const flags = flagsOf(using);
  // A positive number (facts 6.3.3); automation and accessibility are separate grants.
  if (state().permissions.accessibility !== 'granted') throw appleError('System Events got an error: osascript is not allowed to send keystrokes.', 1002);
  post({ do: 'keystroke', text, flags });
}

module.exports = { elements: () => [], property: (handle, name) => applicationProperty('com.apple.systemevents', name), set: () => {},
  commands: { keystroke, activate: () => {}, quit: () => {} } };
