-- argv: bundle id, document id, x, y, width, height -> "index|x|y|width|height": a new rectangle on slide 1 as it stands there then.
-- For a Keynote that takes no idiom of JXA's. The index is that among the slide's shapes, from 1; numbers as this Mac writes them
-- ("380,5" in German). Values are got into variables first: an application need not know `item 1 of position` or `width as text`.
on run argv
	set bundleId to item 1 of argv
	set deckId to item 2 of argv
	set leftEdge to item 3 of argv as integer
	set topEdge to item 4 of argv as integer
	set askedWidth to item 5 of argv as integer
	set askedHeight to item 6 of argv as integer
	using terms from application id "com.apple.Keynote"
		tell application id bundleId
			with timeout of 110 seconds
				tell slide 1 of document id deckId
					set newShape to make new shape at end of shapes with properties {position:{leftEdge, topEdge}, width:askedWidth, height:askedHeight}
					set shapeCount to count of shapes
					set shapeIndex to shapeCount -- the order is that of creation, should no comparison say more
					repeat with i from 1 to shapeCount
						if shape i is newShape then
							set shapeIndex to i
							exit repeat
						end if
					end repeat
					set settledAt to position of shape shapeIndex
					set settledWidth to width of shape shapeIndex
					set settledHeight to height of shape shapeIndex
				end tell
			end timeout
		end tell
	end using terms from
	set settledX to item 1 of settledAt
	set settledY to item 2 of settledAt
	return (shapeIndex as text) & "|" & (settledX as text) & "|" & (settledY as text) & "|" & (settledWidth as text) & "|" & (settledHeight as text)
end run
