# wish tk.tcl -- SCALE THEME [KIND TEXT]... -> a window of Tk with these labels; prints their boxes like gtk.py
set rest [lassign $argv scale theme]
set texts [dict create]
foreach {kind text} $rest { dict lappend texts $kind $text }
array set box {} ;# "kind,text" -> a command that returns the box

tk scaling [expr {96 / 72.0 * $scale}]
foreach font {TkDefaultFont TkTextFont TkMenuFont TkHeadingFont TkCaptionFont} { font configure $font -size 10 -family {DejaVu Sans} }
font create green -family {DejaVu Sans} -size [expr {round(-11 * $scale)}]
font create title -family {DejaVu Sans} -size 20 -weight bold
set ground [expr {$theme eq "dark" ? "#2b2b2b" : "#d9d9d9"}]
set ink [expr {$theme eq "dark" ? "#eeeeee" : "#000000"}]
set field [expr {$theme eq "dark" ? "#1e1e1e" : "#ffffff"}]
set faint [expr {$theme eq "dark" ? "#8a8a8a" : "#7a7a7a"}]
tk_setPalette background $ground foreground $ink activeBackground $ground disabledForeground $faint
ttk::style theme use clam
ttk::style configure . -background $ground -foreground $ink -font TkDefaultFont
ttk::style map TNotebook.Tab -background [list selected $ground !selected $field]
wm title . Labels

set made 0
proc name {parent} { return $parent.w[incr ::made] }
proc widget_box {widget} {
    list [expr {[winfo rootx $widget] - [winfo rootx .]}] [expr {[winfo rooty $widget] - [winfo rooty .]}] [winfo width $widget] [winfo height $widget]
}
proc inside {widget part} {
    lassign [widget_box $widget] x y
    lassign $part left top width height
    list [expr {$x + $left}] [expr {$y + $top}] $width $height
}
proc row_box {list at} { inside $list [$list bbox $at] }
proc tab_box {book at} {
    set xs {}
    for {set x 0} {$x < [winfo width $book]} {incr x} { if {[$book index @$x,12] eq $at} { lappend xs $x } }
    inside $book [list [lindex $xs 0] 2 [llength $xs] [expr {round(24 * $::scale)}]]
}
proc grid_of {parent kinds columns script} { ;# the script makes $widget with the text $text
    set frame [frame [name $parent]]
    set at 0
    foreach kind $kinds {
        foreach text [dict get $::texts $kind] {
            set widget [name $frame]
            eval $script
            if {[string match disabled* $kind]} { $widget configure -state disabled }
            grid $widget -row [expr {$at / $columns}] -column [expr {$at % $columns}] -sticky w -padx 5 -pady 3
            set ::box($kind,$text) [list widget_box $widget]
            incr at
        }
    }
    return $frame
}
proc framed {parent at} {
    set text [lindex [dict get $::texts frame] $at]
    set frame [labelframe [name $parent]]
    set label [label [name $parent] -text $text]
    $frame configure -labelwidget $label
    set ::box(frame,$text) [list widget_box $label]
    return $frame
}

pack [grid_of {} menu 9 {menubutton $widget -text $text}] -anchor w
pack [grid_of {} title 1 {label $widget -text $text -font title}] -anchor w
set book [ttk::notebook .book]
foreach text [dict get $texts tab] {
    $book add [frame [name $book]] -text $text
    set box(tab,$text) [list tab_box $book [expr {[$book index end] - 1}]]
}
pack [grid_of [lindex [$book tabs] 0] {label {disabled label}} 4 {label $widget -text $text -padx 10}] -anchor w
pack $book -fill x
pack [frame .middle] -fill x
pack [frame .middle.left] [frame .middle.right] -side left -anchor n -padx 4 -pady 4
pack [frame .middle.left.top] -anchor w
set ticks [framed .middle.left.top 0]
set radios [framed .middle.left.top 1]
set entries [framed .middle.left 2]
pack $ticks $radios -side left -anchor n -padx 4
pack $entries -anchor w -padx 4 -pady 4
pack [grid_of $ticks {{tick box} {disabled tick box}} 2 {
    checkbutton $widget -text $text -selectcolor $::field -variable $widget
    set ::$widget [expr {[string length $text] % 2 == 0}]
}]
pack [grid_of $radios {{radio button}} 2 {radiobutton $widget -text $text -value $text -selectcolor $::field -variable radio}]
set radio [lindex [dict get $texts {radio button}] 0]
pack [grid_of $entries placeholder 3 {
    entry $widget -width 22 -background $::field -foreground $::faint
    $widget insert 0 $text
}]
set rows [concat [dict get $texts row] [dict get $texts {selected row}]]
pack [listbox .middle.right.rows -height [llength $rows] -width 26 -background $field -selectbackground #3465a4 -selectforeground white]
set kinds [concat [lrepeat [llength [dict get $texts row]] row] {{selected row}}]
foreach text $rows kind $kinds {
    .middle.right.rows insert end $text
    set box($kind,$text) [list row_box .middle.right.rows [expr {[.middle.right.rows index end] - 1}]]
}
.middle.right.rows selection set end
pack [grid_of {} {button {disabled button}} 5 {button $widget -text $text}] -anchor w
pack [grid_of {} {{green button}} 6 {button $widget -text $text -font green -background #2e7d32 -foreground white}] -anchor w

after 1000 {
    set all {}
    foreach {kind text} $rest { lappend all "\[[join [eval $box($kind,$text)] ,]\]" }
    puts "BOXES \[[join $all ,]\]"
    flush stdout
}
