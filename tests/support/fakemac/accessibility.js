// The accessibility C API (ApplicationServices): elements, attributes, actions.
// Without the Accessibility grant every call answers -25211 (facts D2).
'use strict';
const { defineClass, defineFunction, makeObject, wrap, toJs, isKind, dataOf, isPlainRef, pointee, number } = load('bridge');
const { state, post, appWithPid, windowsInAxOrder, frontToBack, windowAt } = load('world');

const OK = 0; const ILLEGAL_ARGUMENT = -25201; const INVALID_ELEMENT = -25202; const CANNOT_COMPLETE = -25204;
const NO_ATTRIBUTE = -25205; const NO_ACTION = -25206; const DISABLED = -25211; const NO_VALUE = -25212;

defineClass('AXUIElement', { framework: 'ApplicationServices', shown: '__NSCFType', zero: { description: ({ pid }) => wrap(`<AXUIElement 0x600003c3> {pid=${pid}}`) } });
// AXValue structs are unreachable through the bridge; their description can be parsed (facts B8).
defineClass('AXValue', { framework: 'ApplicationServices', shown: '__NSCFType', zero: { description: (data) => wrap(data) } });
const real = (value) => value.toFixed(6);
const pointValue = (x, y) => makeObject('AXValue', `<AXValue 0x600003c0> {value = x:${real(x)} y:${real(y)} type = kAXValueCGPointType}`);
const errorValue = (error) => makeObject('AXValue', `<AXValue 0x600003c2> {value = error:${error} type = kAXValueAXErrorType}`);
const sizeValue = (width, height) => makeObject('AXValue', `<AXValue 0x600003c1> {value = w:${real(width)} h:${real(height)} type = kAXValueCGSizeType}`);

const element = (data) => makeObject('AXUIElement', data); // {pid} or {pid, window} or {pid, window, widget}
const ROLES = { button: 'AXButton', field: 'AXTextField', password: 'AXTextField', textview: 'AXTextArea', checkbox: 'AXCheckBox', label: 'AXStaticText',
  slider: 'AXSlider', menuitem: 'AXMenuItem', group: 'AXGroup', scroll: 'AXScrollArea' };

// While the screen is locked accessibility shows only the menu bar (facts D6).
// A sheet is no window of its app: it is a child, of the role AXSheet, of the window that it is attached to.
const MENU_LAYER = 101;
// An Open or Save panel is a window of a process of its own, and to accessibility one of the app that asked for it.
const isOf = (world, pid) => (window) => pid === ((appWithPid(world, window.pid) || {}).panels_of || window.pid);
const panelsOf = (world, pid) => world.windows.filter((window) => window.pid !== pid && isOf(world, pid)(window) && !window.closing);
// only of the active Space, though minimised ones too
const isListed = (world, { space, minimised }) => world.switches.ax_windows === 'all' || minimised || space === null || space === world.space;
const shownWindows = (world, pid) => (world.session.locked ? [] : windowsInAxOrder(world, pid).concat(panelsOf(world, pid))
  .filter((window) => window.alpha > 0 && !window.attached_to && isListed(world, window)));
const sheetsOf = (world, window) => world.windows.filter((one) => one.attached_to === window.id && !one.closing);
const keyWindow = (world, pid) => frontToBack(world).find((window) => isOf(world, pid)(window) && window.layer < 20 && window.layer >= 0 && window.alpha > 0 && window.bounds[2] >= 50 && !window.never_key);

function appAttributes(world, app) {
  const windows = shownWindows(world, app.pid);
  const focused = keyWindow(world, app.pid);
  const window = focused && !world.session.locked ? element({ pid: app.pid, window: focused.id }) : null;
  return { AXRole: 'AXApplication', AXTitle: app.name, AXFrontmost: world.frontmost_pid === app.pid, AXHidden: Boolean(app.hidden),
    AXMenuBar: element({ pid: app.pid, menu: [] }), AXChildren: world.switches.menus_in_children ? menusOf(world, app.pid) : [],
    AXWindows: windows.map((one) => element({ pid: app.pid, window: one.id })), AXFocusedWindow: window, AXMainWindow: window };
}
const menusOf = (world, pid) => world.windows.filter((one) => one.pid === pid && one.layer === MENU_LAYER && !one.closing).map((one) => element({ pid, window: one.id }));

// The menu bar: an element is named by its place in it. The Window menu has the windows of all Spaces.
function menuItem(world, app, path) {
  const plain = (AXTitle, AXIdentifier) => ({ AXRole: 'AXMenuItem', AXTitle, AXIdentifier });
  const windows = world.windows.filter((one) => one.pid === app.pid && one.layer === 0 && one.title && !one.attached_to)
    .map((one) => ({ ...plain(one.title, world.switches.window_menu === 'named' ? 'makeKeyAndOrderFront:' : undefined), window: one.id }));
  const menu = (title, items) => ({ AXRole: 'AXMenuBarItem', AXTitle: title, below: [{ AXRole: 'AXMenu', below: items }] });
  const bar = { AXRole: 'AXMenuBar', below: [menu('Apple', [plain('Sleep', 'sleep:')]), menu('Fenster', [plain('Minimieren', 'performMiniaturize:'), ...windows]), menu('Hilfe', [])] };
  const { below = [], window, ...attributes } = path.reduce((node, at) => node.below[at], bar);
  const AXChildren = below.map((one, at) => element({ pid: app.pid, menu: [...path, at] }));
  return { attributes: { ...attributes, AXChildren }, settable: [], actions: window === undefined ? [] : ['AXPress'], window };
}

function windowAttributes(world, window) {
  const [x, y, width, height] = window.ax_bounds || window.bounds; // rounded otherwise than the window server's
  const focused = keyWindow(world, window.pid);
  const sheets = sheetsOf(world, window).map((sheet) => element({ pid: window.pid, window: sheet.id }));
  const AXSubrole = window.modal ? 'AXDialog' : 'AXStandardWindow';
  const role = window.ax_role || (window.layer === MENU_LAYER ? 'AXMenu' : window.attached_to ? 'AXSheet' : 'AXWindow');
  // Electron builds its tree only when it is asked to (facts B8)
  const app = appWithPid(world, window.pid);
  const children = app.builds_tree_on_demand && !app.has_tree ? [] : childrenOf(window).filter((one) => !isAsleep(app, dataOf(one).widget, 'missing'));
  return { AXRole: role, AXSubrole, AXModal: Boolean(window.modal), AXTitle: window.title, AXPosition: pointValue(x, y), AXSize: sizeValue(width, height), AXMinimized: Boolean(window.minimised),
    AXMain: focused === window, AXFocused: focused === window, AXChildren: sheets.concat(children), AXParent: element({ pid: window.pid }) };
}

// Chromium builds the tree of its page at the first read: the widget `page` has no children until then, or is missing.
const isAsleep = (app, name, page) => name === 'page' && !app.has_tree && app.page === page;
const widgetElement = (window, widget) => element({ pid: window.pid, window: window.id, widget: widget.name });
const childrenOf = (window, parent) => window.widgets.filter((widget) => widget.inside === parent).map((widget) => widgetElement(window, widget));

// A widget's `ax` adds attributes, or takes them away (null).
function widgetAttributes(app, window, widget) {
  const [x, y, width, height] = widget.rect;
  const known = { AXRole: ROLES[widget.kind], AXPosition: pointValue(window.bounds[0] + x, window.bounds[1] + y), AXSize: sizeValue(width, height),
    AXEnabled: widget.enabled !== false, AXFocused: window.focus === widget.name, AXChildren: isAsleep(app, widget.name, 'empty') ? [] : childrenOf(window, widget.name),
    AXParent: widget.inside ? element({ pid: window.pid, window: window.id, widget: widget.inside }) : element({ pid: window.pid, window: window.id }) };
  if (widget.kind === 'password') known.AXSubrole = 'AXSecureTextField'; // the application chooses what its value shows
  // a label shows its text as its value, and has no title
  if (widget.kind !== 'label') known[widget.kind === 'field' ? 'AXPlaceholderValue' : 'AXTitle'] = widget.text || '';
  if ('value' in widget || widget.kind === 'label') known.AXValue = 'value' in widget ? (widget.kind === 'checkbox' ? Number(widget.value) : widget.value) : widget.text;
  if (widget.visible_rows) known.AXVisibleRows = widget.visible_rows.map((row) => element({ pid: window.pid, window: window.id, widget: row }));
  if (widget.label) known.AXTitleUIElement = element({ pid: window.pid, window: window.id, widget: widget.label });
  Object.assign(known, widget.ax);
  return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== null));
}

// The owner of the panel that takes the keys, else the application in front; "stale": one that has neither.
function focusedApplication(world) {
  const panel = frontToBack(world).find((window) => window.takes_keys);
  const pid = { told: panel ? panel.pid : world.frontmost_pid, stale: 420, silent: null }[world.switches.focused_application];
  return pid === null ? null : element({ pid });
}

let timeout_s = 90; // how long Apple's own is, is not in the facts: longer than any test waits, so that nothing may rely on it

// {attributes, settable, actions} of an element, or the number of an error.
function describe(given) {
  const world = state();
  const target = pointee(given);
  if (world.permissions.accessibility !== 'granted') return DISABLED;
  if (!isKind(target, 'AXUIElement')) return ILLEGAL_ARGUMENT;
  const { pid, window: windowId, widget: widgetName, menu, isSystemWide } = dataOf(target);
  if (isSystemWide) return { attributes: { AXFocusedApplication: focusedApplication(world) }, settable: [], actions: [] };
  const app = appWithPid(world, pid);
  if (!app) return CANNOT_COMPLETE;
  // A call waits for the application until the messaging timeout, the element's or the process's own.
  const hang = () => { post({ do: 'note', kind: 'asked_in_vain' }); host.sleep(1000 * (dataOf(target).timeout || timeout_s)); return CANNOT_COMPLETE; };
  if (app.hung) return hang();
  if (menu) return menuItem(world, app, menu);
  if (app.page && !app.has_tree) post({ do: 'ax_set', pid, attribute: 'AXManualAccessibility', value: true });
  if (windowId === undefined) return { attributes: appAttributes(world, app), settable: ['AXFrontmost', ...(app.builds_tree_on_demand ? ['AXManualAccessibility'] : [])], actions: [] };
  const window = world.windows.find((one) => one.id === windowId && !one.closing);
  if (!window) return INVALID_ELEMENT;
  if (widgetName === undefined) return { attributes: windowAttributes(world, window), settable: ['AXMain', 'AXMinimized', 'AXFocused'], actions: ['AXRaise'] };
  const widget = window.widgets.find((one) => one.name === widgetName);
  if (!widget) return INVALID_ELEMENT;
  if (widget.hangs) return hang();
  return { attributes: widgetAttributes(app, window, widget), settable: [], actions: [] };
}

const name = (value) => (typeof toJs(value) === 'string' ? toJs(value) : '');

function copyAttribute([target, attribute, out], binding) {
  const found = describe(target);
  if (typeof found === 'number') return found;
  if (!(name(attribute) in found.attributes)) return NO_ATTRIBUTE;
  const value = found.attributes[name(attribute)];
  if (value === null) return NO_VALUE;
  // An untyped Ref() is reported to throw when the call succeeds (facts 6.3.7); bound with 'id*' it works (B7).
  if (!isPlainRef(out) || !binding || !/^id ?\*$/.test(binding.types[2])) throw new Error('Ref has incompatible type');
  out[0] = wrap(value);
  return OK;
}

// One answer for all; a missing one is the error as an AXValue, unless kAXCopyMultipleAttributeOptionStopOnError (AXUIElement.h).
function copyAttributes([target, names, options, out], binding) {
  const found = describe(target);
  if (typeof found === 'number') return found;
  if (!isPlainRef(out) || !binding || !/^id ?\*$/.test(binding.types[3])) throw new Error('Ref has incompatible type');
  const wanted = toJs(names);
  const missing = wanted.find((one) => !(one in found.attributes));
  if (number('AXUIElementCopyMultipleAttributeValues: options', options) && missing) return NO_ATTRIBUTE;
  out[0] = wrap(wanted.map((one) => {
    if (!(one in found.attributes)) return errorValue(NO_ATTRIBUTE);
    return found.attributes[one] === null ? errorValue(NO_VALUE) : found.attributes[one];
  }));
  return OK;
}

function setAttribute([target, attribute, value]) {
  const found = describe(target);
  if (typeof found === 'number') return found;
  if (!found.settable.includes(name(attribute))) return name(attribute) in found.attributes ? ILLEGAL_ARGUMENT : NO_ATTRIBUTE;
  post({ do: 'ax_set', ...dataOf(target), attribute: name(attribute), value: toJs(wrap(value)) });
  return OK;
}

function performAction([target, action]) {
  const found = describe(target);
  if (typeof found === 'number') return found;
  if (!found.actions.includes(name(action))) return NO_ACTION;
  post({ do: 'raise', window: found.window, ...dataOf(target) });
  return OK;
}

const framework = 'ApplicationServices';
const fn = (functionName, arity, returns, call, more) => defineFunction(functionName, { framework, arity, returns, call, ...more });
const trusted = () => state().permissions.accessibility === 'granted';
fn('AXIsProcessTrusted', 0, 'Boolean', () => trusted() && state().switches.trust_preflight === 'agrees');
fn('AXIsProcessTrustedWithOptions', 1, 'Boolean', ([options]) => {
  const asked = toJs(options);
  if (asked && asked.AXTrustedCheckOptionPrompt) post({ do: 'dialog', text: 'Terminal would like to control this computer using accessibility features.' });
  return trusted();
});
fn('AXUIElementCreateApplication', 1, 'cf', ([pid]) => element({ pid: number('AXUIElementCreateApplication: pid', pid) }));
fn('AXUIElementCopyAttributeValue', 3, 'number', copyAttribute);
fn('AXUIElementCopyMultipleAttributeValues', 4, 'number', copyAttributes);
fn('AXUIElementSetAttributeValue', 3, 'number', setAttribute);
fn('AXUIElementPerformAction', 2, 'number', performAction);
fn('AXUIElementSetMessagingTimeout', 2, 'number', ([target, seconds]) => {
  if (!isKind(pointee(target), 'AXUIElement')) return ILLEGAL_ARGUMENT;
  const wanted = number('messaging timeout', seconds);
  if (dataOf(pointee(target)).isSystemWide) timeout_s = wanted; // for this whole process (AXUIElement.h)
  else dataOf(pointee(target)).timeout = wanted;
  return OK;
});
fn('AXUIElementCreateSystemWide', 0, 'cf', () => element({ isSystemWide: true }));
fn('AXUIElementGetPid', 2, 'number', ([target, out]) => {
  if (!isKind(pointee(target), 'AXUIElement')) return ILLEGAL_ARGUMENT;
  out[0] = dataOf(pointee(target)).pid;
  return OK;
});
// The element that a click there would reach; the window server skips overlays that let clicks through.
fn('AXUIElementCopyElementAtPosition', 4, 'number', ([target, x, y, out], binding) => {
  const world = state();
  if (!trusted()) return DISABLED;
  if (!isKind(pointee(target), 'AXUIElement')) return ILLEGAL_ARGUMENT;
  if (world.switches.position_test !== 'works') return CANNOT_COMPLETE;
  const [left, top] = [number('x', x), number('y', y)];
  const window = windowAt(world, left, top);
  const { pid } = dataOf(pointee(target)); // of that application only, or of any
  if (!window || (pid !== undefined && pid !== window.pid)) return NO_VALUE;
  if (!isPlainRef(out) || !binding || !/^id ?\*$/.test(binding.types[3])) throw new Error('Ref has incompatible type');
  const isIn = ([wx, wy, width, height], [px, py]) => wx <= px && px < wx + width && wy <= py && py < wy + height;
  const widget = [...window.widgets].reverse().find((one) => isIn(one.rect, [left - window.bounds[0], top - window.bounds[1]]));
  out[0] = widget ? widgetElement(window, widget) : element({ pid: window.pid, window: window.id });
  return OK;
});
