// Application.currentApplication(): osascript itself, with the standard additions.
'use strict';
const { state, post, strict } = load('world');

const ADDITIONS = {
  displayDialog: () => host.hang(), displayAlert: () => host.hang(), chooseFile: () => host.hang(), // they wait for a person
  displayNotification: (text) => { post({ do: 'note', kind: 'notification', what: { text } }); },
  theClipboard: () => { const found = state().clipboard.types['public.utf8-plain-text']; return found ? found.text : ''; },
  setTheClipboardTo: (text) => { post({ do: 'clipboard_text', text }); },
  doShellScript: () => { throw strict('doShellScript is not simulated: no shell in the fake world'); },
  systemInfo: () => ({ systemVersion: state().system.version }),
};

const currentApplication = () => {
  const own = { includeStandardAdditions: false };
  return new Proxy(own, {
    get: (target, name) => {
      if (name in target) return target[name];
      if (name === 'name') return () => 'osascript';
      if (target.includeStandardAdditions && name in ADDITIONS) return ADDITIONS[name];
      return undefined;
    },
  });
};

module.exports = { currentApplication };
