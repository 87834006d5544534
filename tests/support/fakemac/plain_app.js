// An app that is only told to come forward or to quit.
'use strict';
const { state, post, appWithBundle } = load('world');

// The application properties that every scriptable app has.
function applicationProperty(bundle, property) {
  const world = state();
  const app = appWithBundle(world, bundle);
  return { name: app.name, id: app.bundle_id, frontmost: app.pid !== null && world.frontmost_pid === app.pid, version: '1.0' }[property];
}

module.exports = {
  applicationProperty,
  elements: () => [],
  property: (handle, name) => applicationProperty(module.exports.bundle, name),
  set: () => {},
  commands: {
    activate: (app) => { post({ do: 'launch', bundle_id: app.bundle_id, by: 'activate' }); },
    quit: (app) => { post({ do: 'quit', pid: app.pid }); },
  },
};
