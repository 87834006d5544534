// {} -> {"displays": [{id, name, scale, bounds}] or null without a GUI session, "can_record": bool}: points, origin top left of the main display.
function activeOrder() {
    // `screencapture -D n` counts in this order; where the bridge cannot tell it, NSScreen's is the best there is
    try {
        const ids = Ref();
        const count = Ref();
        $.CGGetActiveDisplayList(16, ids, count);
        const order = [];
        for (let i = 0; i < count[0]; i++) order.push(ids[i]);
        return order;
    } catch (e) {
        return [];
    }
}

function run(argv) {
    const onScreen = windowList(ON_SCREEN_ONLY);
    if (onScreen === null) return JSON.stringify({displays: null});
    const screens = $.NSScreen.screens;
    const mainHeight = screens.count ? screens.objectAtIndex(0).frame.size.height : 0;
    const displays = [];
    for (let i = 0; i < screens.count; i++) {
        const screen = screens.objectAtIndex(i);
        const frame = screen.frame;
        displays.push({
            id: screen.deviceDescription.objectForKey('NSScreenNumber').js,
            name: screen.localizedName.js,
            scale: screen.backingScaleFactor,
            // Cocoa counts upwards from the bottom of the main screen, everything else downwards from its top
            bounds: {x: frame.origin.x, y: mainHeight - frame.origin.y - frame.size.height, width: frame.size.width, height: frame.size.height},
        });
    }
    const order = activeOrder();
    const rank = d => (order.indexOf(d.id) < 0 ? displays.indexOf(d) : order.indexOf(d.id));
    const sorted = displays.slice().sort((a, b) => rank(a) - rank(b));
    return JSON.stringify({displays: sorted, can_record: canRecord(onScreen)});
}
