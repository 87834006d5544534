// The objects and commands of the fake System Events: processes, their windows, keystrokes (facts 6.3.3, B7, F).
// Automation and Accessibility are separate grants.
'use strict';
const { state, post, appleError, appWithPid, windowsInAxOrder } = load('world');
const { applicationProperty } = load('plain_app');

const MODIFIERS = { 'command down': 0x100000, 'shift down': 0x20000, 'option down': 0x80000, 'control down': 0x40000 };
const ROLES = { button: 'AXButton', field: 'AXTextField', password: 'AXTextField', textview: 'AXTextArea', checkbox: 'AXCheckBox', label: 'AXStaticText' };
const KINDS = { button: ['button'], 'text field': ['field', 'password'], checkbox: ['checkbox'] };

const isTrusted = () => state().permissions.accessibility === 'granted';
function needAccessibility() {
  // -25211 verbatim in public notes; -1719 is in the wild too (facts 6.3.3).
  if (!isTrusted()) throw appleError('System Events got an error: osascript is not allowed assistive access.', state().switches.accessibility_error);
}

function elements(handle, cls) {
  const world = state();
  if (cls === 'process' || cls === 'application process') return world.apps.filter((app) => app.pid !== null).map((app) => ({ cls: 'process', pid: app.pid }));
  needAccessibility();
  if (cls === 'window') return world.session.locked ? [] : windowsInAxOrder(world, handle.pid).filter((window) => window.alpha > 0).map((window) => ({ cls: 'window', pid: handle.pid, window: window.id }));
  if (cls === 'action') return (handle.widget === undefined ? ['AXRaise'] : ['AXPress']).map((name) => ({ cls: 'action', name, on: handle }));
  if (cls === 'attribute') return ['AXTitle', 'AXMinimized', 'AXMain', 'AXRole'].map((name) => ({ cls: 'attribute', name, on: handle }));
  const wanted = KINDS[cls];
  return windowOf(handle).widgets.filter((widget) => !wanted || wanted.includes(widget.kind)).map((widget) => ({ cls: 'UI element', pid: handle.pid, window: handle.window, widget: widget.name }));
}

function windowOf(handle) {
  const window = state().windows.find((one) => one.id === handle.window && !one.closing);
  if (!window) throw appleError("Can't get object.", -1728);
  return window;
}
const widgetOf = (handle) => windowOf(handle).widgets.find((widget) => widget.name === handle.widget);

function processProperty(handle, name) {
  const world = state();
  const app = appWithPid(world, handle.pid);
  return { name: app.name, 'displayed name': app.name, 'unix id': app.pid, 'bundle identifier': app.bundle_id, frontmost: world.frontmost_pid === app.pid, visible: !app.hidden, 'background only': app.policy !== 0 }[name];
}

function windowProperty(handle, name) {
  const window = windowOf(handle);
  return { name: window.title, title: window.title, position: window.bounds.slice(0, 2), size: window.bounds.slice(2), role: 'AXWindow', subrole: 'AXStandardWindow' }[name];
}

function widgetProperty(handle, name) {
  const widget = widgetOf(handle);
  const [left, top] = windowOf(handle).bounds;
  return { name: widget.text || '', title: widget.text || '', role: ROLES[widget.kind], value: widget.value, position: [left + widget.rect[0], top + widget.rect[1]], size: widget.rect.slice(2),
    enabled: widget.enabled !== false }[name];
}

function attributeProperty(handle, name) {
  if (name === 'name') return handle.name;
  const window = windowOf(handle.on);
  return { AXTitle: window.title, AXMinimized: Boolean(window.minimised), AXMain: false, AXRole: 'AXWindow' }[handle.name];
}

function property(handle, name) {
  if (handle.cls === 'application') return name === 'UI elements enabled' ? isTrusted() : applicationProperty('com.apple.systemevents', name);
  if (handle.cls === 'process') return processProperty(handle, name);
  needAccessibility();
  if (handle.cls === 'window') return windowProperty(handle, name);
  if (handle.cls === 'attribute') return attributeProperty(handle, name);
  if (handle.cls === 'action') return handle.name;
  return widgetProperty(handle, name);
}

function set(handle, name, value) {
  needAccessibility();
  if (handle.cls === 'process' && name === 'frontmost' && value) post({ do: 'activate', pid: handle.pid, by: 'System Events' });
  if (handle.cls === 'process' && name === 'visible') post({ do: 'set_hidden', pid: handle.pid, hidden: !value });
  if (handle.cls === 'window') post({ do: 'ax_set', pid: handle.pid, window: handle.window, attribute: name === 'position' ? 'AXPosition' : 'AXSize', value });
  if (handle.cls === 'attribute') post({ do: 'ax_set', pid: handle.on.pid, window: handle.on.window, attribute: handle.name, value });
  if (handle.cls === 'UI element' && name === 'value') post({ do: 'ax_set', pid: handle.pid, window: handle.window, widget: handle.widget, attribute: 'AXValue', value });
}

function flagsOf(using = []) {
  return [using].flat().reduce((flags, name) => {
    if (!(name in MODIFIERS)) throw appleError("Can't convert types.", -1700);
    return flags | MODIFIERS[name];
  }, 0);
}

function needKeystrokes() {
  if (!isTrusted()) throw appleError('System Events got an error: osascript is not allowed to send keystrokes.', 1002);
}

function keystroke(app, text, { using }) {
  if (typeof text !== 'string') throw appleError("Can't convert types.", -1700);
  const flags = flagsOf(using);
  needKeystrokes();
  post({ do: 'keystroke', text, flags });
}

function keyCode(app, codes, { using }) {
  const flags = flagsOf(using);
  needKeystrokes();
  for (const keycode of [codes].flat()) {
    if (!Number.isInteger(keycode)) throw appleError("Can't convert types.", -1700);
    [10, 11].forEach((type) => post({ type, keycode, unicode: '', flags, tap: 1 }));
  }
  post({ type: 12, keycode: 63, flags: 0, tap: 1 });
}

function perform(app, handle) {
  needAccessibility();
  if (!handle || handle.cls !== 'action') throw appleError('Message not understood.', -1708);
  const { pid, window, widget } = handle.on;
  post({ do: handle.name === 'AXRaise' ? 'raise' : 'ax_press', pid, window, widget });
}

function click(app, handle) {
  needAccessibility();
  if (!handle || handle.cls !== 'UI element') throw appleError('Message not understood.', -1708);
  post({ do: 'ax_press', pid: handle.pid, window: handle.window, widget: handle.widget });
}

module.exports = { elements, property, set, commands: { keystroke, 'key code': keyCode, perform, click, activate: () => {}, quit: () => {} } };
