// The fake world as the modules of osascript see it.
'use strict';

let seen = { text: null, world: null };
function state() {
  const text = host.stateText();
  if (text !== seen.text) seen = { text, world: JSON.parse(text) };
  return seen.world;
}
const post = (event) => host.postText(JSON.stringify(event));
const note = (kind, what) => post({ do: 'note', kind, what });

// A mistake that a Mac would answer with something silent or unverified: an error here, and a line in the world's log.
function strict(why) {
  note('strict', { why });
  return new Error(`fakemac strict: ${why}`);
}
const isStrict = () => state().switches.strict;

const appWithPid = (world, pid) => world.apps.find((app) => app.pid !== null && app.pid === pid);
const appWithBundle = (world, bundle) => world.apps.find((app) => app.bundle_id === bundle);
const responsibleApp = (world) => world.apps.find((app) => app.responsible);
const ownerName = (world, window) => (appWithPid(world, window.pid) || { name: world.other_owners[window.pid] }).name;

function isOnScreen(world, window) {
  const app = appWithPid(world, window.pid);
  if (window.minimised || window.on_screen === false || (app && app.hidden)) return false;
  return window.space === null || window.space === undefined || window.space === world.space;
}
const frontToBack = (world) => world.windows.filter((window) => isOnScreen(world, window)).sort((a, b) => b.layer - a.layer);
// The topmost window that a click there reaches; windows that are transparent or ignore the mouse let it through.
const windowAt = (world, x, y) => frontToBack(world).find((window) => {
  const [left, top, width, height] = window.bounds;
  return window.alpha > 0 && !window.click_through && !window.closing && left <= x && x < left + width && top <= y && y < top + height;
});
const activeDisplays = (world) => world.displays.filter((display) => display.active !== false).sort((a, b) => Boolean(b.main) - Boolean(a.main));

// CG z-order rank is not AX order (facts B7): accessibility lists windows by age.
const windowsInAxOrder = (world, pid) => world.windows.filter((window) => window.pid === pid && !window.closing && window.layer < 20 && window.layer >= 0)
  .sort((a, b) => a.id - b.id);

const appleError = (message, number) => Object.assign(new Error(message), { errorNumber: number });

module.exports = { state, post, note, strict, isStrict, appWithPid, appWithBundle, responsibleApp, ownerName, isOnScreen, frontToBack, windowAt, activeDisplays,
  windowsInAxOrder, appleError };
