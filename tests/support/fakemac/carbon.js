// The input sources of TextInputSources.h: the current one, the layout for ASCII, and selecting one by its id.
'use strict';
const { defineClass, defineFunction, makeObject, wrap, toJs, dataOf, pointee } = load('bridge');
const { state, post } = load('world');

const fn = (name, arity, returns, call) => defineFunction(name, { framework: 'Carbon', needsBinding: true, arity, returns, call });
defineClass('TISInputSource', { shown: 'TISInputSource' });
const source = (id) => makeObject('TISInputSource', id);

fn('TISCopyCurrentKeyboardInputSource', 0, 'cf', () => { const { source: id } = state().keyboard; return id === null ? null : source(id); });
fn('TISCopyCurrentASCIICapableKeyboardLayoutInputSource', 0, 'cf', () => source('com.apple.keylayout.US'));
fn('TISGetInputSourceProperty', 2, 'cf', ([target, name]) => {
  const id = dataOf(pointee(target));
  const type = id.includes('keylayout') ? 'TISTypeKeyboardLayout' : 'TISTypeKeyboardInputMode';
  return { TISPropertyInputSourceID: wrap(id), TISPropertyInputSourceType: wrap(type) }[toJs(name)] || null;
});
fn('TISCreateInputSourceList', 2, 'cf', ([filter]) => wrap([source(toJs(filter).TISPropertyInputSourceID)]));
fn('TISSelectInputSource', 1, 'number', ([target]) => { post({ do: 'select_source', id: dataOf(pointee(target)) }); return 0; });
