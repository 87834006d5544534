// {"window": {id, pid, title, x, y, width, height, is_popup}} -> {"is_trusted": bool, "is_found": bool, "is_hung": bool,
//   "elements": [{role, name, value, states, x, y, width, height}]}: what the window shows, clipped to it, in screen points.
// By JXA alone: one call an element fetches all its attributes, so a compiled program would save little.
ObjC.bindFunction('AXUIElementCopyMultipleAttributeValues', ['int', ['id', 'id', 'unsigned int', 'id*']]);

const API_DISABLED = -25211; // kAXErrorAPIDisabled
const ANSWER_S = 1;
const BUDGET_MS = 8000;
const MOST_ELEMENTS = 1000;
const MOST_VISITED = 8000;
const MOST_DEPTH = 60;
const MOST_SIBLINGS = 500;
const WAKE_S = 0.5; // what a Chromium application needs to build the tree of a page

const NAMES = ['AXRole', 'AXSubrole', 'AXTitle', 'AXDescription', 'AXValue', 'AXPlaceholderValue', 'AXHelp', 'AXEnabled', 'AXFocused',
    'AXExpanded', 'AXDisclosing', 'AXSelected', 'AXPosition', 'AXSize', 'AXTitleUIElement', 'AXVisibleRows', 'AXChildren'];
const WANTED = $(NAMES); // bridged once
// ARIA's words. What is not here only holds others.
const ROLES = {
    AXButton: 'button', AXMenuButton: 'button', AXDisclosureTriangle: 'button', AXColorWell: 'button', AXDockItem: 'button',
    AXCheckBox: 'checkbox', AXRadioButton: 'radio', AXPopUpButton: 'combobox', AXComboBox: 'combobox', AXTextField: 'textbox',
    AXTextArea: 'textbox', AXDateField: 'textbox', AXTimeField: 'textbox', AXSlider: 'slider', AXIncrementor: 'spinbutton',
    AXStepper: 'spinbutton', AXLink: 'link', AXMenuItem: 'menuitem', AXMenuBarItem: 'menuitem', AXStaticText: 'text',
    AXHeading: 'heading', AXImage: 'img', AXProgressIndicator: 'progressbar', AXLevelIndicator: 'meter', AXRow: 'row', AXCell: 'cell',
};
const SUBROLES = {
    AXSwitch: 'switch', AXToggle: 'switch', AXSearchField: 'searchbox', AXTabButton: 'tab', AXOutlineRow: 'treeitem',
};
const WINDOW_BUTTONS = ['AXCloseButton', 'AXMinimizeButton', 'AXZoomButton', 'AXFullScreenButton'];
const HOLD_OTHERS = ['row', 'cell', 'treeitem', 'img']; // listed only where they have a name of their own
const CAN_BE_CHECKED = ['checkbox', 'radio', 'switch'];

// Its attributes by name, those that it lacks too (an AXValue that holds the error's number); null where the application does
// not answer, or knows it no more.
function attributesOf(element, pid) {
    if (hungPids.has(pid)) return null;
    const values = Ref();
    const error = $.AXUIElementCopyMultipleAttributeValues(element, WANTED, 0, values);
    if (error === CANNOT_COMPLETE) hungPids.add(pid);
    if (error !== 0 || isNil(values[0])) return null;
    return Object.fromEntries(NAMES.map((name, index) => [name, values[0].objectAtIndex(index)]));
}

// A text, number or boolean as text; '' for everything else.
function plain(value) {
    const found = isNil(value) ? '' : ObjC.unwrap(value);
    return ['string', 'number', 'boolean'].includes(typeof found) ? String(found) : '';
}

function isYes(value) {
    return ['1', 'true'].includes(plain(value));
}

function isList(value) {
    return !isNil(value) && Number(value.count) >= 0;
}

function intersection(a, b) {
    const [x, y] = [Math.max(a.x, b.x), Math.max(a.y, b.y)];
    const width = Math.min(a.x + a.width, b.x + b.width) - x;
    const height = Math.min(a.y + a.height, b.y + b.height) - y;
    return width > 0 && height > 0 ? {x: x, y: y, width: width, height: height} : null;
}

function roleOf(about) {
    const subrole = plain(about.AXSubrole);
    return WINDOW_BUTTONS.includes(subrole) ? undefined : SUBROLES[subrole] || ROLES[plain(about.AXRole)];
}

function statesOf(about, role) {
    const states = [];
    if (CAN_BE_CHECKED.includes(role) && isYes(about.AXValue)) states.push('checked');
    if (plain(about.AXEnabled) && !isYes(about.AXEnabled)) states.push('disabled');
    if (isYes(about.AXFocused)) states.push('focused');
    const opened = plain(about.AXExpanded) || plain(about.AXDisclosing);
    if (opened) states.push(['1', 'true'].includes(opened) ? 'expanded' : 'collapsed');
    if (isYes(about.AXSelected) || (role === 'tab' && isYes(about.AXValue))) states.push('selected');
    return states;
}

// The text of another element that stands beside it as its label.
function labelOf(about, pid) {
    const label = about.AXTitleUIElement;
    const isElement = !isNil(label) && /AXUIElement/.test(textOf(label.description));
    return isElement ? plain(attribute(label, 'AXValue', pid)) : '';
}

// null for what is not listed.
function shown(about, role, box, pid) {
    const own = plain(about.AXTitle) || plain(about.AXDescription);
    const isText = role === 'text' || role === 'heading';
    const isSecret = plain(about.AXSubrole) === 'AXSecureTextField';
    const hasValue = !isSecret && !isText && role !== 'tab' && !CAN_BE_CHECKED.includes(role);
    const name = isText ? plain(about.AXValue) || own : own || labelOf(about, pid) || plain(about.AXPlaceholderValue) || plain(about.AXHelp);
    if ((isText || HOLD_OTHERS.includes(role)) && !name) return null;
    return Object.assign({role: role, name: name, value: hasValue ? plain(about.AXValue) : '', states: statesOf(about, role)}, box);
}

// All of a subtree that is visible in `clip`, into `found`.
function collect(element, pid, clip, depth, search) {
    if (search.found.length >= MOST_ELEMENTS || search.visited >= MOST_VISITED || Date.now() > search.until) return;
    search.visited += 1;
    const about = attributesOf(element, pid);
    if (about === null) return;
    const box = boxOf(about.AXPosition, about.AXSize);
    const inside = box && intersection(box, clip);
    const role = roleOf(about);
    if (role !== undefined && inside && depth > 0) {
        const one = shown(about, role, inside, pid);
        if (one) search.found.push(one);
    }
    const scrolls = plain(about.AXRole) === 'AXScrollArea';
    if (depth >= MOST_DEPTH || (scrolls && !inside)) return;
    // a long table offers the rows that are on the screen
    const list = [about.AXVisibleRows, about.AXChildren].find(isList);
    if (plain(about.AXRole) === 'AXWebArea') search.page = list && Number(list.count) ? 'full' : 'empty';
    for (let i = 0; list && i < Math.min(Number(list.count), MOST_SIBLINGS); i++) {
        collect(list.objectAtIndex(i), pid, scrolls ? inside : clip, depth + 1, search);
    }
}

// A menu is no window to accessibility: it is what is above the element in its middle, or a child of its application.
function menuAt(app, target) {
    const isAt = element => isMenu(element, target.pid) && isSameFrame(frameOf(element, target.pid) || {}, target);
    return elementAt(target.pid, target, element => isMenu(element, target.pid))
        || elements(app, 'AXChildren', target.pid, MOST_CHILDREN).find(isAt) || null;
}

// Chromium, and with it Electron, builds the tree of its pages only once somebody reads roles.
function isChromium(pid) {
    const app = $.NSRunningApplication.runningApplicationWithProcessIdentifier(pid);
    if (isNil(app) || isNil(app.bundleURL)) return false;
    const files = $.NSFileManager.defaultManager.contentsOfDirectoryAtPathError($(`${app.bundleURL.path.js}/Contents/Frameworks`), null);
    return !isNil(files) && ObjC.deepUnwrap(files).some(name => / Framework\.framework$/.test(name)); // Electron, Google Chrome
}

function rootOf(app, target) {
    if (target.is_popup) return menuAt(app, target);
    const found = candidates(app, target);
    return found.length === 1 ? found[0][0] : null;
}

function run(argv) {
    const target = JSON.parse(argv[0]).window;
    const answer = {is_trusted: true, is_found: false, is_hung: false, elements: []};
    limitAccessibility(ANSWER_S);
    const app = $.AXUIElementCreateApplication(target.pid);
    // what a preflight says may be a false no: a read cannot be
    answer.is_trusted = $.AXUIElementCopyAttributeValue(app, $('AXRole'), Ref()) !== API_DISABLED;
    if (!answer.is_trusted) return JSON.stringify(answer);
    const root = rootOf(app, target);
    const read = () => {
        const search = {found: [], visited: 0, page: 'missing', until: Date.now() + BUDGET_MS};
        if (root) collect(root, target.pid, target, 0, search);
        return search;
    };
    let search = read();
    const isAsleep = () => !search.found.length || search.page === 'empty' || (search.page === 'missing' && isChromium(target.pid));
    if (root && !hungPids.has(target.pid) && isAsleep()) {
        $.AXUIElementSetAttributeValue(app, $('AXManualAccessibility'), $(true)); // some refuse it, and wake all the same
        $.NSThread.sleepForTimeInterval(WAKE_S);
        search = read();
    }
    Object.assign(answer, {is_found: Boolean(root), is_hung: hungPids.has(target.pid), elements: search.found});
    return JSON.stringify(answer);
}
