// {"ask": name, ...} -> facts that only a Mac knows, for mac_probe.py; runs after window_list.js and accessibility.js.
// Events are created and read back, or counted, never posted.
ObjC.import('Foundation');
ObjC.bindFunction('CGEventKeyboardSetUnicodeString', ['void', ['void *', 'unsigned long', 'void *']]);
ObjC.bindFunction('CGEventSourceCounterForEventType', ['unsigned int', ['int', 'unsigned int']]);
ObjC.bindFunction('responsibility_get_pid_responsible_for_pid', ['int', ['int']]);

const LEFT_DRAGGED = 6, LINE_UNIT = 1, WHEEL_1 = 11, WHEEL_2 = 12; // CGEventTypes.h
const LEFT_DOWN = 1, MOUSE_MOVED = 5, KEY_DOWN = 10, SESSION_STATE = 0, HID_STATE = 1; // and CGEventSource.h

const ASKED = {
    // does the bridge return 64-bit integers as numbers or as strings?
    types() {
        const app = $.NSWorkspace.sharedWorkspace.frontmostApplication;
        const [policy, count] = [app.activationPolicy, $.NSScreen.screens.count];
        return {policy: typeof policy, count: typeof count, policy_number: Number(policy), count_number: Number(count)};
    },
    main_display() {
        const first = $.NSScreen.screens.objectAtIndex(0).deviceDescription.objectForKey($('NSScreenNumber'));
        return {first: Number(first.js), main: Number($.CGMainDisplayID())};
    },
    unicode(asked) {
        const event = $.CGEventCreateKeyboardEvent($(), 0, true);
        const bytes = $(asked.text).dataUsingEncoding($.NSUTF16LittleEndianStringEncoding).bytes;
        $.CGEventKeyboardSetUnicodeString(event, asked.text.length, bytes);
        return {text: textOf($.NSEvent.eventWithCGEvent(event).characters)};
    },
    // the characters of the keys A and space in the current layout, from events that are only created
    layout() {
        const texts = [0, 49].map(code => $.NSEvent.eventWithCGEvent($.CGEventCreateKeyboardEvent($(), code, true)).characters);
        return {texts: texts.map(textOf)};
    },
    pointer_events() {
        const wheel = $.CGEventCreateScrollWheelEvent2($(), LINE_UNIT, 2, 3, -2, 0);
        const drag = $.CGEventCreateMouseEvent($(), LEFT_DRAGGED, $.CGPointMake(12, 34), 0);
        const at = $.CGEventGetLocation(drag);
        const turned = [WHEEL_1, WHEEL_2].map(field => Number($.CGEventGetIntegerValueField(wheel, field)));
        return {wheel: turned, drag: [Number($.CGEventGetType(drag)), Number(at.x), Number(at.y)]};
    },
    session() {
        const about = ObjC.deepUnwrap(ObjC.castRefToObject($.CGSessionCopyCurrentDictionary()));
        const told = ['kCGSSessionOnConsoleKey', 'kCGSessionLoginDoneKey', 'CGSSessionScreenIsLocked'].map(key => about[key]);
        return {keys: Object.keys(about).sort(), on_console_logged_in_locked: told};
    },
    // at the centre of ordinary windows: the window that a press would reach, and the listed windows down to the first ordinary one
    hit_test() {
        const mainHeight = Number($.NSScreen.screens.objectAtIndex(0).frame.size.height);
        const listed = (listWindows(ON_SCREEN_ONLY) || []).filter(w => w.layer >= 0 && w.alpha > 0);
        return {points: listed.filter(isOrdinary).slice(0, 4).map(({bounds: b}) => {
            const point = {x: b.x + b.width / 2, y: b.y + b.height / 2};
            const there = listed.filter(w => containsPoint(w.bounds, point));
            const hit = $.NSWindow.windowNumberAtPointBelowWindowWithWindowNumber($.CGPointMake(point.x, mainHeight - point.y), 0);
            return {hit: Number(hit), listed: there.slice(0, there.findIndex(isOrdinary) + 1).map(w => w.id)};
        })};
    },
    // presses, moves and keys of the session (posted events included) and of the hardware
    counters() {
        const kinds = [LEFT_DOWN, MOUSE_MOVED, KEY_DOWN];
        return {counts: [SESSION_STATE, HID_STATE].flatMap(state => kinds.map(kind => Number($.CGEventSourceCounterForEventType(state, kind))))};
    },
    // read by input.js before it types
    input_source() {
        ObjC.bindFunction('TISCopyCurrentKeyboardInputSource', ['id', []]);
        ObjC.bindFunction('TISGetInputSourceProperty', ['id', ['id', 'id']]);
        const source = $.TISCopyCurrentKeyboardInputSource();
        const read = name => textOf($.TISGetInputSourceProperty(source, $(`TISPropertyInputSource${name}`)));
        return {id: read('ID'), type: read('Type')};
    },
    // the live answer of the application that NSWorkspace calls frontmost
    frontmost() {
        const pid = frontmostPid();
        if (pid === null || !mayAct()) return {live: null};
        limitAccessibility(1);
        const live = plainAttribute($.AXUIElementCreateApplication(pid), 'AXFrontmost', pid);
        return {live: live === null ? null : Boolean(Number(live))};
    },
    // the frame of the focused window of the app in front, by accessibility and by the window server
    frames() {
        const pid = frontmostPid();
        const front = (listWindows(ON_SCREEN_ONLY) || []).find(w => w.pid === pid && isOrdinary(w));
        if (!front || !mayAct()) return {front: null, focused: null};
        limitAccessibility(1);
        const focused = attribute($.AXUIElementCreateApplication(pid), 'AXFocusedWindow', pid);
        return {front: front.bounds, focused: focused ? frameOf(focused, pid) : null};
    },
    responsible(asked) {
        return {pid: Number($.responsibility_get_pid_responsible_for_pid(asked.pid))};
    },
};

function run(argv) {
    const asked = readRequest(argv);
    return JSON.stringify(ASKED[asked.ask](asked));
}
