-- argv: bundle id, document id, a folder that does not exist yet -> "done"
-- Exports all slides that are not skipped to PNG files in this folder or below it, named <folder's name>.001.png and so on.
-- Keynote cannot export a single slide. AppleScript, because JXA cannot pass the export options.
on run argv
	set bundleId to item 1 of argv
	set deckId to item 2 of argv
	set folderPath to item 3 of argv
	using terms from application id "com.apple.Keynote"
		tell application id bundleId
			with timeout of 110 seconds
				export document id deckId to (POSIX file folderPath) as slide images with properties {image format:PNG, skipped slides:false}
			end timeout
		end tell
	end using terms from
	return "done"
end run
