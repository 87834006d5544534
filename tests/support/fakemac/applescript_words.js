// AppleScript's words: a source as lines of tokens, without comments, continued lines joined.
'use strict';

function syntaxError(message, place, errorNumber = -2741) {
  return Object.assign(new Error(message), { isSyntaxError: true, errorNumber, place });
}

const TOKEN = /\s*(?:("(?:[^"\\]|\\.)*")|(\d+(?:\.\d+)?)|([A-Za-z_][A-Za-z0-9_]*|\|[^|]*\|)|(≠|≤|≥|<=|>=|[&+\-*/^=<>(){},:])|(\S))/gy;

function readLine(text, start) {
  const tokens = [];
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match; match = TOKEN.exec(text)) {
    const [, string, digits, name, symbol, other] = match;
    const at = start + TOKEN.lastIndex - match[0].trimStart().length;
    if (other) throw syntaxError('Expected expression but found unknown token.', `${at}:${at + 1}`, -2741);
    if (string) tokens.push({ type: 'string', text: JSON.parse(string), at });
    else if (digits) tokens.push({ type: 'number', text: Number(digits), at });
    else if (name) tokens.push({ type: 'name', text: name.replace(/\|/g, ''), quoted: name.startsWith('|'), at });
    else tokens.push({ type: 'symbol', text: symbol, at });
  }
  return tokens;
}

function readLines(source) {
  const bare = source.replace(/\(\*[\s\S]*?\*\)/g, (all) => all.replace(/[^\n]/g, ' ')).replace(/¬[ \t]*\n/g, '  ');
  const lines = [];
  let start = 0;
  for (const text of bare.split('\n')) {
    const code = text.replace(/^\s*#.*/, '').replace(/^((?:[^"-]|"(?:[^"\\]|\\.)*"|-(?!-))*)--.*$/, '$1');
    const tokens = readLine(code, start);
    if (tokens.length) lines.push({ tokens, place: `${start}:${start + text.length}` });
    start += text.length + 1;
  }
  return lines;
}

module.exports = { readLines, syntaxError };
