// The checks for every Apple event to an app of the fake world: is it running, is it allowed, is the connection valid (facts D2, 6.3.2, E5).
// JXA (specifiers.js) and the one AppleScript (applescript.js) both come here.
'use strict';
const { state, post, appleError, appWithBundle } = load('world');

const touched = new Set();
const cannotGet = () => appleError("Can't get object.", -1728);
const wrongType = () => appleError("Can't convert types.", -1700);
const cannotAssign = () => appleError('Access not allowed.', -10006);

// JXA gets -600 from an app that does not run; AppleScript's tell starts it.
function gate(bundle, { starts = false } = {}) {
  const world = state();
  const app = appWithBundle(world, bundle);
  touched.add(bundle);
  if (app.name === 'Keynote' && world.keynote.connection_invalid) {
    post({ do: 'keynote_connection_error_seen' });
    throw appleError('Connection is invalid.', -609);
  }
  if (app.pid === null && !starts) throw appleError("Application isn't running.", -600);
  if (app.pid === null) post({ do: 'launch', bundle_id: bundle, activate: false, by: 'tell' });
  const { automation } = world.permissions;
  const answer = automation[bundle] || automation['*'];
  if (answer === 'not_asked') host.hang(); // an unanswered prompt (facts 6.3.5)
  if (answer === 'denied') throw appleError(`Not authorized to send Apple events to ${app.name}.`, -1743);
}

function endOfCall() {
  if ([...touched].some((bundle) => /Keynote$/.test(bundle)) && state().keynote.auto_quits) post({ do: 'keynote_end_of_call' });
}

module.exports = { gate, endOfCall, cannotGet, wrongType, cannotAssign };
