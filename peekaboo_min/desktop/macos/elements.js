// {"window": {id, pid, title, x, y, width, height, is_popup}} -> {"is_trusted": bool, "is_found": bool, "is_hung": bool,
//   "elements": [{role, name, value, states, x, y, width, height}]}
// elements: those visible in the window, clipped to it, in screen points. is_found: the window has exactly one match in the
// accessibility tree. is_hung: the application did not answer in time.
// There is no Swift version: each element's attributes take a single call, so Swift would save little.
// Comes after window_list.js and accessibility.js.
ObjC.bindFunction('AXUIElementCopyMultipleAttributeValues', ['int', ['id', 'id', 'unsigned int', 'id*']]);

const API_DISABLED = -25211; // kAXErrorAPIDisabled
const ANSWER_S = 1; // for one accessibility call
const BUDGET_MS = 8000; // two readings and the pause between them fit into the caller's 20 s
const MAX_ELEMENTS = 1000; // as Desktop.read_elements promises
// These limits keep a reading short if a tree is very large or endless.
const MAX_VISITED = 8000;
const MAX_DEPTH = 60;
const MAX_SIBLINGS = 500;
const WAKE_S = 0.5; // the time that Chromium needs to build the tree of a page

const NAMES = ['AXRole', 'AXSubrole', 'AXTitle', 'AXDescription', 'AXValue', 'AXPlaceholderValue', 'AXHelp', 'AXEnabled', 'AXFocused',
    'AXExpanded', 'AXDisclosing', 'AXSelected', 'AXPosition', 'AXSize', 'AXTitleUIElement', 'AXVisibleRows', 'AXChildren'];
const BRIDGED_NAMES = $(NAMES);
// Accessibility role -> ARIA role. An element without a role here is only a container.
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
const WINDOW_BUTTONS = ['AXCloseButton', 'AXMinimizeButton', 'AXZoomButton', 'AXFullScreenButton']; // not listed
const CONTAINERS = ['row', 'cell', 'treeitem', 'img']; // listed only with a name of their own
const CAN_BE_CHECKED = ['checkbox', 'radio', 'switch'];

// Returns the element's attributes by name; a missing one is an AXValue that holds an error number. Returns null if the
// application does not answer or the element is gone.
function attributesOf(element, pid) {
    if (hungPids.has(pid)) return null;
    const values = Ref();
    const error = $.AXUIElementCopyMultipleAttributeValues(element, BRIDGED_NAMES, 0, values);
    if (error === CANNOT_COMPLETE) hungPids.add(pid);
    if (error !== 0 || isNil(values[0])) return null;
    return Object.fromEntries(NAMES.map((name, index) => [name, values[0].objectAtIndex(index)]));
}

// Converts a text, number or boolean to text, and everything else to ''.
function toText(value) {
    const plain = isNil(value) ? '' : ObjC.unwrap(value);
    return ['string', 'number', 'boolean'].includes(typeof plain) ? String(plain) : '';
}

function isTrue(value) {
    return ['1', 'true'].includes(toText(value));
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

function roleOf(attributes) {
    const subrole = toText(attributes.AXSubrole);
    return WINDOW_BUTTONS.includes(subrole) ? undefined : SUBROLES[subrole] || ROLES[toText(attributes.AXRole)];
}

function statesOf(attributes, role) {
    const states = [];
    if (CAN_BE_CHECKED.includes(role) && isTrue(attributes.AXValue)) states.push('checked');
    if (toText(attributes.AXEnabled) && !isTrue(attributes.AXEnabled)) states.push('disabled');
    if (isTrue(attributes.AXFocused)) states.push('focused');
    const expanded = [attributes.AXExpanded, attributes.AXDisclosing].find(toText);
    if (expanded) states.push(isTrue(expanded) ? 'expanded' : 'collapsed');
    if (isTrue(attributes.AXSelected) || (role === 'tab' && isTrue(attributes.AXValue))) states.push('selected');
    return states;
}

// Returns the text of the element that labels this one.
function labelOf(attributes, pid) {
    const label = attributes.AXTitleUIElement;
    const isElement = !isNil(label) && /AXUIElement/.test(textOf(label.description));
    return isElement ? toText(attribute(label, 'AXValue', pid)) : '';
}

function nameOf(attributes, isText, pid) {
    const title = toText(attributes.AXTitle) || toText(attributes.AXDescription);
    if (isText) return toText(attributes.AXValue) || title;
    return title || labelOf(attributes, pid) || toText(attributes.AXPlaceholderValue) || toText(attributes.AXHelp);
}

// Returns null for an element that is not listed.
function describe(attributes, role, box, pid) {
    const isText = role === 'text' || role === 'heading';
    const name = nameOf(attributes, isText, pid);
    if ((isText || CONTAINERS.includes(role)) && !name) return null;
    const isSecret = toText(attributes.AXSubrole) === 'AXSecureTextField';
    const hasValue = !isSecret && !isText && role !== 'tab' && !CAN_BE_CHECKED.includes(role);
    const value = hasValue ? toText(attributes.AXValue) : '';
    return Object.assign({role: role, name: name, value: value, states: statesOf(attributes, role)}, box);
}

// Adds all elements of a subtree that are visible in `clip` to `search.found`.
function collect(element, pid, clip, depth, search) {
    if (search.found.length >= MAX_ELEMENTS || search.visited >= MAX_VISITED || Date.now() > search.deadline) return;
    search.visited += 1;
    const attributes = attributesOf(element, pid);
    if (attributes === null) return;
    const box = boxOf(attributes.AXPosition, attributes.AXSize);
    const visible = box && intersection(box, clip);
    const role = roleOf(attributes);
    if (role !== undefined && visible && depth > 0) {
        const described = describe(attributes, role, visible, pid);
        if (described) search.found.push(described);
    }
    const scrolls = toText(attributes.AXRole) === 'AXScrollArea';
    if (depth >= MAX_DEPTH || (scrolls && !visible)) return;
    // a long table lists its visible rows
    const children = [attributes.AXVisibleRows, attributes.AXChildren].find(isList);
    if (toText(attributes.AXRole) === 'AXWebArea') search.page = children && Number(children.count) ? 'full' : 'empty';
    for (let i = 0; children && i < Math.min(Number(children.count), MAX_SIBLINGS); i++) {
        collect(children.objectAtIndex(i), pid, scrolls ? visible : clip, depth + 1, search);
    }
}

// Finds the element of an open menu. A menu is not among the accessibility windows: it is an ancestor of the element at its
// centre, or a child of its application.
function menuAt(app, target) {
    const isTarget = element => isMenu(element, target.pid) && isSameFrame(frameOf(element, target.pid) || {}, target);
    return findAtCentre(target.pid, target, element => isMenu(element, target.pid))
        || elements(app, 'AXChildren', target.pid, MAX_CHILDREN).find(isTarget) || null;
}

// True for Chromium and Electron, which build the tree of a page only after roles are read.
function isChromium(pid) {
    const app = $.NSRunningApplication.runningApplicationWithProcessIdentifier(pid);
    if (isNil(app) || isNil(app.bundleURL)) return false;
    const files = $.NSFileManager.defaultManager.contentsOfDirectoryAtPathError($(`${app.bundleURL.path.js}/Contents/Frameworks`), null);
    return !isNil(files) && ObjC.deepUnwrap(files).some(name => / Framework\.framework$/.test(name)); // "Electron Framework.framework"
}

function rootOf(app, target) {
    if (target.is_popup) return menuAt(app, target);
    const matches = matchingElements(app, target);
    return matches.length === 1 ? matches[0][0] : null;
}

function run(argv) {
    const target = readRequest(argv).window;
    const reply = {is_trusted: true, is_found: false, is_hung: false, elements: []};
    limitAccessibility(ANSWER_S);
    const app = $.AXUIElementCreateApplication(target.pid);
    // the preflight may wrongly deny the permission; an attempt to read cannot
    reply.is_trusted = $.AXUIElementCopyAttributeValue(app, $('AXRole'), Ref()) !== API_DISABLED;
    if (!reply.is_trusted) return JSON.stringify(reply);
    const root = rootOf(app, target);
    const read = () => {
        const search = {found: [], visited: 0, page: 'missing', deadline: Date.now() + BUDGET_MS};
        if (root) collect(root, target.pid, target, 0, search);
        return search;
    };
    let search = read();
    const isAsleep = () => !search.found.length || search.page === 'empty' || (search.page === 'missing' && isChromium(target.pid));
    if (root && !hungPids.has(target.pid) && isAsleep()) {
        $.AXUIElementSetAttributeValue(app, $('AXManualAccessibility'), $(true)); // Chromium refuses it, but reading roles wakes it anyway
        $.NSThread.sleepForTimeInterval(WAKE_S);
        search = read();
    }
    Object.assign(reply, {is_found: Boolean(root), is_hung: hungPids.has(target.pid), elements: search.found});
    return JSON.stringify(reply);
}
