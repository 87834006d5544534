// The one AppleScript that a Mac has to run, compared literally except for comments, and its effects (facts E4).
// There is no interpreter: a change of the script needs a run on a Mac, and the same change here.
'use strict';
const { gate } = load('apple_events');
const { state, appleError } = load('world');

const EXPORT = (bundle) => `on run argv
	set bundleId to item 1 of argv
	set deckId to item 2 of argv
	set folderPath to item 3 of argv
	using terms from application id "${bundle}"
		tell application id bundleId
			with timeout of 110 seconds
				export document id deckId to (POSIX file folderPath) as slide images with properties {image format:PNG, skipped slides:false}
			end timeout
		end tell
	end using terms from
	return "done"
end run
`;

function run(source, [bundle, deck, folder]) {
  const text = source.replace(/^--.*\n/gm, '');
  // Without the application that defines its terms, a Mac asks a person for the application.
  const terms = state().apps.map((app) => app.bundle_id).find((id) => text === EXPORT(id));
  if (!terms) throw appleError('Expected end of line but found something that no Mac was asked about.', -2741);
  if (folder === undefined) throw appleError('Can’t get item 1 of {}.', -1728);
  gate(bundle, { starts: true }); // a tell starts it
  load('keynote').exportImages(bundle, deck, folder, 110);
  return 'done';
}

module.exports = { run };
