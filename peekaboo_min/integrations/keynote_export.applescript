-- argv: bundle id, document id, a folder that is not there yet -> "done"; its slides are PNG files somewhere in that folder then.
-- AppleScript, because JXA cannot pass the options. There is no export of one slide, and `slide images` writes a folder:
-- <folder's name>.001.png and so on, of the slides that are not skipped.
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
