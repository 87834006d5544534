#!/bin/sh
# Make a card with Keynote, on a Mac: a rectangle in the middle of slide 1 with your text, exported as an image.
#   scripts/keynote_card.sh "Happy birthday, Ada!" card.png     leaves card.png; the document stays open in Keynote
set -eu
[ $# -eq 2 ] || { echo "usage: $0 TEXT FILE.png" >&2; exit 2; }
text=$1
image=$2
here=$(cd "$(dirname "$0")" && pwd)
[ -f "$here/peekaboo.py" ] || { echo "$0: copy it into the folder of peekaboo.py" >&2; exit 2; }
peekaboo() { python3 "$here/peekaboo.py" "$@"; }

ready=$(peekaboo keynote open)
echo "$ready"
slide_width=${ready##*slide_width=} && slide_width=${slide_width%%,*}
slide_height=${ready##*slide_height=} && slide_height=${slide_height%%,*}

# 60 % of the slide's width and 30 % of its height
width=$((slide_width * 6 / 10))
height=$((slide_height * 3 / 10))
peekaboo keynote rectangle $(((slide_width - width) / 2)) $(((slide_height - height) / 2)) "$width" "$height"
peekaboo keynote text -- "$text"
peekaboo keynote screenshot -- "$image"
