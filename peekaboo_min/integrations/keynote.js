// One JSON argument in, JSON out, by its "do":
// {"do": "find"} -> {"bundle_id": text|null}: the Keynote that is installed. Sends nothing to it.
// {"do": "open", bundle_id, only_open, theme, always_new, width, height} -> {document_id, name, is_new, has_theme, is_blank, width, height}
// {"do": "size", bundle_id, document_id} -> {width, height, is_skipped} of slide 1
// {"do": "draw", bundle_id, document_id, x, y, width, height} -> {index, x, y, width, height}: as it stands on the slide then
// {"do": "text", bundle_id, document_id, index, x, y, width, height, text} -> {text}: as it stands in the shape then
// All but "find" may answer {"problem": "not_running"|"no_deck"|"no_document"|"no_shape"} instead.
ObjC.import('AppKit');

// Since version 15 Keynote has a bundle id of its own; both can be installed, and both are called Keynote.
const BUNDLE_IDS = ['com.apple.Keynote', 'com.apple.iWork.Keynote'];
// A Keynote that starts is not running (-600), its connection invalid (-609), its document not there (-1728, -1719).
const STARTING = [-600, -609, -1728, -1719];
const WAIT_S = 0.2, PATIENCE = 50;

function whenStarted(work) {
    for (let left = PATIENCE; ; left--) {
        try {
            return work();
        } catch (e) {
            if (left === 0 || !STARTING.includes(e.errorNumber)) throw e;
        }
        $.NSThread.sleepForTimeInterval(WAIT_S);
    }
}

// Asks LaunchServices: naming an application that is not there would open the "Where is Keynote?" chooser.
function find() {
    const workspace = $.NSWorkspace.sharedWorkspace;
    const installed = BUNDLE_IDS.filter(id => !workspace.URLForApplicationWithBundleIdentifier(id).isNil());
    return {bundle_id: installed.length ? installed[0] : null};
}

function open(KN, request) {
    // One without a window may have quit since the last call.
    const before = whenStarted(() => {
        if (!request.only_open) KN.activate();
        return KN.documents.id();
    });
    if (request.only_open && before.length === 0) return {problem: 'no_deck'};
    const isNew = request.always_new || before.length === 0;
    const hasTheme = !isNew || makeDocument(KN, request);
    const id = isNew ? KN.documents.id().find(id => !before.includes(id)) : before[0]; // document 1 is the front one
    if (id === undefined) throw new Error('Keynote made no document');
    const doc = KN.documents.byId(id);
    const size = whenStarted(() => ({width: doc.width(), height: doc.height()}));
    const isBlank = !isNew || makeBlank(doc);
    doc.currentSlide = doc.slides[0];
    return {document_id: id, name: doc.name(), is_new: isNew, has_theme: hasTheme, is_blank: isBlank, width: size.width, height: size.height};
}

// Whether the new document has the theme: their names are localised. Without a size it would be 1024x768.
function makeDocument(KN, request) {
    const properties = {width: request.width, height: request.height};
    const theme = KN.themes.byName(request.theme);
    const hasTheme = theme.exists();
    if (hasTheme) properties.documentTheme = theme;
    KN.documents.push(KN.Document(properties));
    return hasTheme;
}

// Whether slide 1 has no placeholders. To JXA `masterSlides`, the name of layouts before 2020, is no term (-1700) in later versions.
function makeBlank(doc) {
    try {
        doc.slides[0].baseLayout = doc.slideLayouts.byName('Blank');
        return true;
    } catch (e) {
        return false; // another language's name, or a Keynote of before 2020
    }
}

function place(shape) {
    const at = shape.position();
    return {x: at.x, y: at.y, width: shape.width(), height: shape.height()};
}

function isAt(shape, wanted) {
    const actual = place(shape);
    return ['x', 'y', 'width', 'height'].every(key => Math.abs(actual[key] - wanted[key]) <= 1);
}

// A shape that nobody describes further is a rectangle; there is no `shape type`, and shapes have no id. Text items, images
// and tables are made so in Keynote 14.5 from JXA; NOT VERIFIED on a Mac for shapes.
function draw(KN, doc, wanted) {
    const shapes = doc.slides[0].shapes;
    const before = shapes.length;
    shapes.push(KN.Shape({position: {x: wanted.x, y: wanted.y}, width: wanted.width, height: wanted.height}));
    // the order is that of creation; if none was made, there is no such index
    return Object.assign({index: before + 1}, place(shapes[before])); // object spread is younger than ES2017
}

// The index alone is not enough: it changes when a shape below it is deleted. The place tells whether it is still the same.
function write(doc, wanted) {
    const shapes = doc.slides[0].shapes;
    const alike = [];
    for (let i = 0; i < shapes.length; i++) if (isAt(shapes[i], wanted)) alike.push(i + 1);
    if (alike.length !== 1 && !alike.includes(wanted.index)) return {problem: 'no_shape'};
    const shape = shapes[(alike.includes(wanted.index) ? wanted.index : alike[0]) - 1];
    shape.objectText = wanted.text;
    return {text: shape.objectText()};
}

function answer(request) {
    if (request.do === 'find') return find();
    const KN = Application(request.bundle_id);
    if (request.do === 'open' && !request.only_open) return open(KN, request);
    // asking a Keynote that does not run would start it, without the document
    if (!KN.running()) return {problem: request.only_open ? 'no_deck' : 'not_running'};
    if (request.do === 'open') return open(KN, request);
    if (!KN.documents.id().includes(request.document_id)) return {problem: 'no_document'};
    const doc = KN.documents.byId(request.document_id);
    if (request.do === 'draw') return draw(KN, doc, request);
    if (request.do === 'text') return write(doc, request);
    return {width: doc.width(), height: doc.height(), is_skipped: doc.slides[0].skipped()};
}

function run(argv) {
    return JSON.stringify(answer(JSON.parse(argv[0])));
}
