# A Tk application: runs Tcl from stdin, and prints the input of its widgets as JSON.
fconfigure stdin -encoding utf-8
fconfigure stdout -encoding utf-8 -buffering line
proc json_text {text} {
    set escaped [string map [list \\ \\\\ \" \\\" \n \\n \t \\t \r \\r] $text]
    return "\"$escaped\""
}
proc report {event text} {
    puts "{\"event\": [json_text $event], \"text\": [json_text $text]}"
}
proc place {widget} { # the widget's centre in pixels of its toplevel
    set top [winfo toplevel $widget]
    return "[expr {[winfo rootx $widget] - [winfo rootx $top] + [winfo width $widget] / 2}]\
        [expr {[winfo rooty $widget] - [winfo rooty $top] + [winfo height $widget] / 2}]"
}
proc read_order {} {
    if {[gets stdin script] < 0} { exit }
    update
    if {[catch {uplevel #0 $script} result]} { set result "ERROR $result" }
    update
    report answer $result
}
wm title . "Calm main"
wm geometry . 420x320+80+60
text .t -width 40 -height 6
entry .e -width 30
checkbutton .c -text Agree -variable agreed
button .b -text Open -command {open_dialog}
menubutton .m -text File -menu .m.list -relief raised
menu .m.list -tearoff 0
foreach name {New Save Quit} { .m.list add command -label $name -command [list report act "menu $name"] }
ttk::combobox .s -values {apple pear plum} -state readonly
bind .s <<ComboboxSelected>> {report act "select [.s get]"}
pack .m .t .e .c .b .s -anchor w -padx 8 -pady 3
proc open_dialog {} {
    destroy .d
    toplevel .d
    wm title .d "Calm dialog"
    wm geometry .d 260x140+200+160
    button .d.ok -text "Close me" -command {report act closed; destroy .d}
    pack .d.ok -padx 40 -pady 40
    report act opened
}
set lights 0
proc lights {half_ms} { # a window with a light that blinks, and a field that changes if r is pressed
    destroy .lights
    toplevel .lights
    wm title .lights "Lights [incr ::lights]"
    wm geometry .lights 300x200+520+60
    label .lights.field -width 12 -background white
    label .lights.light -width 12 -background gray
    bind .lights r {.lights.field configure -background blue}
    pack .lights.field .lights.light -pady 20
    if {$half_ms} { blink $::lights $half_ms red gray }
}
proc blink {number half_ms colour other} {
    if {$number != $::lights} return
    .lights.light configure -background $colour
    after $half_ms blink $number $half_ms $other $colour
}
bind all <Button> {report press "%W %b"}
update
fileevent stdin readable read_order
report ready ""
