# A Tk application for the trials: runs Tcl from stdin, prints the input of its widgets as JSON.
fconfigure stdin -encoding utf-8
fconfigure stdout -encoding utf-8 -buffering line
proc json_text {text} {
    set escaped [string map [list \\ \\\\ \" \\\" \n \\n \t \\t \r \\r] $text]
    return "\"$escaped\""
}
proc say {event text {number 0}} {
    puts "{\"event\": [json_text $event], \"text\": [json_text $text], \"number\": $number}"
}
proc answer {number script} {
    update
    if {[catch {uplevel #0 $script} result]} { set result "ERROR $result" }
    update
    say answer $result $number
}
proc place {widget} { # the widget's centre in pixels of its toplevel
    set top [winfo toplevel $widget]
    return "[expr {[winfo rootx $widget] - [winfo rootx $top] + [winfo width $widget] / 2}]\
        [expr {[winfo rooty $widget] - [winfo rooty $top] + [winfo height $widget] / 2}]"
}
proc id {widget} { return [expr {[winfo id [winfo toplevel $widget]]}] }
proc order {} {
    if {[gets stdin line] < 0} { exit }
    if {$line ne ""} { uplevel #0 $line }
}
wm title . "Calm main"
wm geometry . 420x320+80+60
text .t -width 40 -height 6
entry .e -width 30
entry .e2 -width 30
checkbutton .c -text Agree -variable agreed -command {say act check}
button .b -text Open -command {open_dialog}
menubutton .m -text File -menu .m.list -relief raised
menu .m.list -tearoff 0
foreach name {New Save Quit} { .m.list add command -label $name -command [list say act "menu $name"] }
ttk::combobox .s -values {apple pear plum} -state readonly
bind .s <<ComboboxSelected>> {say act "select [.s get]"}
pack .m .t .e .e2 .c .b .s -anchor w -padx 8 -pady 3
proc open_dialog {} {
    destroy .d
    toplevel .d
    wm title .d "Calm dialog"
    wm geometry .d 260x140+200+160
    button .d.ok -text "Close me" -command {say act closed; destroy .d}
    pack .d.ok -padx 40 -pady 40
    say act opened
}
set lights 0
proc lights {half_ms} { # a window with two lights that blink, and a field that changes if r is pressed
    destroy .lights
    toplevel .lights
    wm title .lights "Lights [incr ::lights]"
    wm geometry .lights 300x200+520+60
    label .lights.field -width 12 -background white
    bind .lights r {.lights.field configure -background blue}
    foreach light {upper lower} {
        label .lights.$light -width 12 -background gray
        if {$half_ms} { after [expr {int(rand() * $half_ms)}] blink $::lights .lights.$light $half_ms red gray }
    }
    pack .lights.upper .lights.field .lights.lower -pady 20
}
proc blink {number light half_ms colour other} {
    if {$number != $::lights} return
    $light configure -background $colour
    after $half_ms blink $number $light $half_ms $other $colour
}
bind all <Button> {say press "%W %b"}
update
fileevent stdin readable order
say ready ""
