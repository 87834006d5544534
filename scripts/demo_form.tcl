# A small form that reports what really reached it: the ground truth for the demo and the tests.
# wish demo_form.tcl REPORT [TITLE [+X+Y]] -> appends one JSON object a line to the file REPORT.
lassign $argv report_path window_title place
if {$window_title eq ""} { set window_title "Visitor book" }

proc json_text {text} {
    set escaped [string map [list \\ \\\\ \" \\\" \n \\n \t \\t \r \\r] $text]
    return "\"$escaped\""
}
proc report {event args} {
    set pairs [list "\"event\": [json_text $event]"]
    foreach {key value} $args {
        lappend pairs "[json_text $key]: [expr {[string is double -strict $value] && $key ni {text} ? $value : [json_text $value]}]"
    }
    set f [open $::report_path a]
    fconfigure $f -encoding utf-8 -translation lf
    puts $f "{[join $pairs {, }]}"
    close $f
}

wm title . $window_title
if {$place ne ""} { wm geometry . $place }
wm resizable . 1 1
ttk::style theme use clam
ttk::style configure . -font {{DejaVu Sans} 11} -background #f4f1ea
ttk::style configure TEntry -fieldbackground white -padding 4
ttk::style configure Act.TButton -foreground #10324a -padding {18 8}
. configure -background #f4f1ea

set agreed 0
set said "Nobody has signed yet."
ttk::label .head -text $window_title -font {{DejaVu Sans} 18 bold} -foreground #10324a
ttk::label .name_label -text "Name"
ttk::entry .name -width 34
ttk::label .mail_label -text "E-mail"
ttk::entry .mail -width 34
ttk::label .notes_label -text "Notes"
text .notes -width 34 -height 5 -font {{DejaVu Sans} 11} -relief solid -borderwidth 1 -undo 1
ttk::checkbutton .agree -text "Show my name to other visitors" -variable agreed -command {report toggle widget agree value $agreed}
ttk::button .sign -text "Sign the book" -style Act.TButton -command sign
ttk::button .details -text "Details" -style Act.TButton -command details
ttk::label .said -textvariable said -foreground #5a6a72
grid .head -columnspan 2 -sticky w -padx 22 -pady {18 10}
foreach row {name mail notes} { grid .${row}_label .$row -sticky nw -padx {22 12} -pady 5 }
grid .agree -column 1 -sticky w -pady 6
grid .sign .details -pady {8 4} -padx {22 12} -sticky w
grid .said -columnspan 2 -sticky w -padx 22 -pady {6 18}
grid columnconfigure . 1 -weight 1
foreach row {name mail notes} { grid configure .$row -sticky new -padx {0 22} }
focus .name

proc sign {} {
    set ::said "Signed: [.name get]"
    report sign name [.name get] mail [.mail get] notes [.notes get 1.0 end-1c] agreed $::agreed
}

# A dialog of its own, as agents meet them: two fields, a tick, a confirmation.
proc details {} {
    if {[winfo exists .d]} { return }
    toplevel .d -background #f4f1ea
    wm title .d "Details"
    wm transient .d .
    wm geometry .d +[expr {[winfo rootx .] + 40}]+[expr {[winfo rooty .] + 40}]
    set ::news 0
    ttk::label .d.city_label -text "City"
    ttk::entry .d.city -width 26
    ttk::label .d.job_label -text "Profession"
    ttk::entry .d.job -width 26
    ttk::checkbutton .d.news -text "Send me news" -variable news
    ttk::button .d.ok -text "Confirm" -style Act.TButton -command {
        report details city [.d.city get] job [.d.job get] news $news
        set said "Details of [.d.city get] kept."
        destroy .d
    }
    foreach row {city job} { grid .d.${row}_label .d.$row -sticky w -padx 16 -pady 6 }
    grid .d.news -column 1 -sticky w -padx 16
    grid .d.ok -column 1 -sticky w -padx 16 -pady 12
    focus .d.city
    tkwait visibility .d
    update
    layout .d
    report opened widget details
}

# Where the widgets are, in pixels of their window's content.
proc layout {top} {
    foreach w [winfo children $top] {
        if {[winfo toplevel $w] ne $top || ![winfo ismapped $w]} continue
        report layout widget [string trimleft $w .] x [expr {[winfo rootx $w] - [winfo rootx $top]}] \
            y [expr {[winfo rooty $w] - [winfo rooty $top]}] width [winfo width $w] height [winfo height $w]
    }
}
proc clicked {widget button x y} { report click widget [string trimleft $widget .] button $button x $x y $y }
bind all <Button> {clicked %W %b %X %Y}
# Tk runs only the most special of a tag's bindings: the second press of a double click is a click, too
bind all <Double-Button-1> {clicked %W 1 %X %Y; report double widget [string trimleft %W .]}
# on the window, as Tk keeps Alt for its menus in the tag `all`
bind . <KeyPress> {report key keysym %K state %s}
bind . <F12> {report text name [.name get] notes [.notes get 1.0 end-1c] text [.notes get 1.0 end-1c]}
bind . <Configure> {if {"%W" eq "."} {after cancel {layout .}; after idle {layout .}}}
bind . <Destroy> {if {"%W" eq "."} {report closed widget form}}
update
layout .
report ready widget form
