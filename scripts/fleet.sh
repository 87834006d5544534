#!/bin/sh
# Run one peekaboo-min command on many Linux desktops at once, with GNU parallel over ssh. The output and files of each
# host come back into a folder named after it. A host that is down or hangs does not delay the others.
#   scripts/fleet.sh alice@box1,box2/:1 -- image --path screen.png       fleet/box2_:1/screen.png, one per desktop
#   scripts/fleet.sh -o runs -t 300 hosts.txt -- agent --goal "Sign out" --app Form     runs/HOST/, with each report
#   scripts/fleet.sh box1,box2 -- desktop -- sh -c 'xterm & exec peekaboo-min agent --goal "Run ls" --app xterm'
# The last one runs on desktops of their own: the hosts need no session.
# A host is [USER@]NAME[/DISPLAY]; without a display it is :0. hosts.txt holds one a line, `#` starts a comment.
# A Mac's ssh session is not in its graphical session: there only NO_GUI_SESSION can be expected (not tried on a Mac).
set -eu
usage() {
    echo "usage: $0 [-o FOLDER] [-t SECONDS] [-j HOSTS_AT_ONCE] HOST,HOST...|FILE -- COMMAND [ARGUMENT...]" >&2
    exit 2
}
fail() {
    echo "$0: $1" >&2
    exit "${2:-1}"
}

exit_code_in() { # FOLDER: the exit code that the host reported, digits only
    head -c 3 "$1/exit_code" | tr -cd 0-9
}

one_host() { # HOST: run the command there; the exit code is the command's, or ssh's 255
    case $1 in */*) name=${1%/*} display=${1##*/} ;; *) name=$1 display=:0 ;; esac
    into=$FLEET_FOLDER/$(echo "$1" | tr / _)
    rm -f "$into/exit_code" # from an earlier run
    mkdir -p "$into"
    # shellcheck disable=SC2086  # FLEET_SSH is a command with its options
    $FLEET_SSH -T -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -- "$name" \
        "export DISPLAY=$display; $FLEET_COMMAND" </dev/null >"$into/.archive" 2>"$into/ssh.log" || {
        code=$?
        rm -f "$into/.archive"
        return "$code"
    }
    tar -xf "$into/.archive" -C "$into" --no-same-owner --no-same-permissions && rm -f "$into/.archive" "$into/ssh.log"
    find "$into" -type l -exec rm -f {} + # the next run's archive could write through a link, anywhere here
    code=$(exit_code_in "$into")
    return "${code:-1}"
}
if [ "${1:-}" = --one-host ]; then # as parallel runs it, with the rest in the environment
    one_host "$2"
    exit
fi

folder=fleet seconds=60 jobs=16
while getopts o:t:j: option; do
    case $option in
    o) folder=$OPTARG ;;
    t) seconds=$OPTARG ;;
    j) jobs=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 3 ] && [ "$2" = -- ] || usage
hosts=$1
shift 2
case $seconds$jobs in *[!0-9]*) usage ;; esac
# another program named parallel (moreutils has one) knows none of its options
parallel --version 2>/dev/null | grep -q '^GNU parallel' || fail "GNU parallel is missing: apt-get install parallel"

if [ -f "$hosts" ]; then hosts=$(sed 's/#.*//' "$hosts"); else hosts=$(echo "$hosts" | tr ',' '\n'); fi
hosts=$(echo "$hosts" | tr -d ' \t\r' | sed '/^$/d' | sort -u)
[ -n "$hosts" ] || fail "there is no host in the list" 2
# a name that starts with - would be an option of ssh, one with .. another folder
bad=$(echo "$hosts" | grep -Evx '([A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9_][A-Za-z0-9._-]*(/:[0-9]+(\.[0-9]+)?)?' || true)
[ -z "$bad" ] || fail "not a host: $(echo "$bad" | head -n 1); write [USER@]NAME[/:DISPLAY]" 2

quoted() { # each argument as one word of a shell
    for word in "$@"; do printf " '%s'" "$(printf %s "$word" | sed "s/'/'\\\\''/g")"; done
}

# Run on the host, in a new folder that is sent back as an archive. `timeout` there, too: ssh's end leaves it running.
FLEET_COMMAND=$(
    cat <<END
set -eu; PATH="\$HOME/.local/bin:\$PATH"; work=\$(mktemp -d); trap 'rm -rf "\$work"' EXIT; cd "\$work"; code=0
timeout -k 5 $seconds ${FLEET_PROGRAM:-peekaboo-min}$(quoted "$@") >stdout 2>stderr </dev/null || code=\$?
echo \$code >exit_code; tar -cf - .
END
)
export FLEET_COMMAND FLEET_FOLDER="$folder" FLEET_SSH="${FLEET_SSH:-ssh}"

mkdir -p "$folder"
failed=0
# parallel's own limit is later than the host's, and for a host that hangs before its own can count
echo "$hosts" | parallel --will-cite -j "$jobs" --timeout $((seconds + 20)) --joblog "$folder/joblog.tsv" \
    sh "$(realpath "$0")" --one-host || failed=$?

# summarise each host; the joblog has Seq Host Starttime JobRuntime Send Receive Exitval Signal Command
echo "$hosts" | while read -r host; do
    into=$folder/$(echo "$host" | tr / _)
    if [ -f "$into/exit_code" ]; then
        code=$(exit_code_in "$into")
        line=$(cat "$into/stdout" "$into/stderr" | head -n 1 | tr -d '\000-\010\013-\037' | cut -c 1-100)
    else
        code=-
        line=$(tail -n 1 "$into/ssh.log" 2>/dev/null | tr -d '\000-\037' | cut -c 1-100)
        line="no answer${line:+: $line}"
    fi
    printf '%s\t%s\t%s\n' "$host" "$code" "$line"
done | tee "$folder/summary.tsv"
[ "$failed" -eq 0 ] || fail "$(grep -vc "$(printf '\t0\t')" "$folder/summary.tsv") of $(echo "$hosts" | wc -l) failed"
