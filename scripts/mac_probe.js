// {"ask": name, ...} -> what only a Mac can tell, for mac_probe.py; comes after window_list.js and accessibility.js.
// Events are made and read back, never posted.
ObjC.import('Foundation');
ObjC.bindFunction('CGEventKeyboardSetUnicodeString', ['void', ['void *', 'unsigned long', 'void *']]);
ObjC.bindFunction('responsibility_get_pid_responsible_for_pid', ['int', ['int']]);

const LEFT_DRAGGED = 6, LINE_UNIT = 1, WHEEL_1 = 11, WHEEL_2 = 12; // CGEventTypes.h

const ASKED = {
    // does the bridge give 64-bit integers as numbers or as strings?
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
    // what the keys A and space make by the keyboard's layout, of events that were only made
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
        return {keys: Object.keys(about).sort()};
    },
    // the frame of the focused window of the app in front, by accessibility and by the window server
    frames() {
        const pid = frontmostPid();
        const front = (windowList(ON_SCREEN_ONLY) || []).find(w => w.pid === pid && isOrdinary(w));
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
    const asked = JSON.parse(argv[0]);
    return JSON.stringify(ASKED[asked.ask](asked));
}
