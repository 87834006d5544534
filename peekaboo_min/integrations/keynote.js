// One JSON argument in, JSON out, by its "do":
// {"do": "find"} -> {"bundle_id": text|null}: the Keynote that is installed. Sends nothing to it.
// {"do": "open", bundle_id, theme, always_new, width, height} -> {document_id, name, is_new, has_theme, is_blank, width, height}
// {"do": "size", bundle_id, document_id} -> {width, height, is_skipped} of slide 1
// {"do": "draw", bundle_id, document_id, x, y, width, height} -> {index, x, y, width, height}: as it stands on the slide then
// {"do": "text", bundle_id, document_id, index, x, y, width, height, text} -> {index, text}: as it stands in the shape then
// All but "find" may answer {"problem": "not_running"|"no_document"|"no_shape"|"not_made"} instead; "failures", where they
// stand beside an answer, are the idioms that Keynote did not take.
ObjC.import('AppKit');

// Since version 15 Keynote has a bundle id of its own; both can be installed, and both are called Keynote.
const BUNDLE_IDS = ['com.apple.Keynote', 'com.apple.iWork.Keynote'];
const NOT_RUNNING = -600, CONNECTION_INVALID = -609, NO_OBJECT = -1728, BAD_INDEX = -1719;
// These mean the same for every idiom: not allowed (2), no answer, gone (2).
const FINAL = [-1743, -1744, -1712, NOT_RUNNING, CONNECTION_INVALID];
const WAIT_S = 0.2, PATIENCE = 50;

function patiently(passing, work) {
    for (let left = PATIENCE; ; left--) {
        try {
            return work();
        } catch (e) {
            if (left === 0 || !passing.includes(e.errorNumber)) throw e;
        }
        $.NSThread.sleepForTimeInterval(WAIT_S);
    }
}

const failures = [];

// The first way that works: which of JXA's idioms Keynote takes is documented nowhere.
function firstThatWorks(ways) {
    for (const way of ways) {
        try {
            if (way()) return true;
        } catch (e) {
            if (FINAL.includes(e.errorNumber)) throw e;
            failures.push(`${e.message} (${e.errorNumber})`);
        }
    }
    return false;
}

// One more among `elements`, which has `count` of them. NOT VERIFIED on a Mac which of the two Keynote takes from JXA.
function makeOne(elements, count, push, make) {
    const isMade = () => elements.length > count;
    const by = way => () => { way(); return isMade(); };
    return firstThatWorks([by(push), isMade, by(make), isMade]); // made, and failed over its answer: made all the same
}

// Asks LaunchServices: naming an application that is not there would open the "Where is Keynote?" chooser.
function find() {
    const workspace = $.NSWorkspace.sharedWorkspace;
    const found = BUNDLE_IDS.filter(id => !workspace.URLForApplicationWithBundleIdentifier(id).isNil());
    return {bundle_id: found.length ? found[0] : null};
}

function open(KN, asked) {
    // A Keynote that is starting is "not running" for a while; one without a window may have quit since the last call.
    const before = patiently([NOT_RUNNING, CONNECTION_INVALID, NO_OBJECT], () => {
        KN.activate();
        return KN.documents.id();
    });
    const isNew = asked.always_new || before.length === 0;
    const hasTheme = isNew ? makeDocument(KN, asked, before.length) : true;
    const id = isNew ? KN.documents.id().find(one => !before.includes(one)) : before[0]; // document 1 is the front one
    if (id === undefined) return {problem: 'not_made'};
    const doc = KN.documents.byId(id);
    const size = patiently([NO_OBJECT, BAD_INDEX, CONNECTION_INVALID], () => ({width: doc.width(), height: doc.height()}));
    const isBlank = isNew ? makeBlank(doc) : true;
    doc.currentSlide = doc.slides[0];
    return {document_id: id, name: doc.name(), is_new: isNew, has_theme: hasTheme, is_blank: isBlank, width: size.width, height: size.height};
}

// Whether the new document has the theme: their names are localised. Unasked its size would be 1024x768.
function makeDocument(KN, asked, count) {
    const make = properties => makeOne(
        KN.documents,
        count,
        () => KN.documents.push(KN.Document(properties)),
        () => KN.make({new: 'document', withProperties: properties})
    );
    const size = {width: asked.width, height: asked.height};
    const theme = KN.themes.byName(asked.theme);
    if (theme.exists() && make({documentTheme: theme, width: size.width, height: size.height})) return true;
    make(size);
    return false;
}

// A new slide has placeholders for a title and a subtitle. Older versions call layouts masters.
function makeBlank(doc) {
    const use = (layouts, property) => () => {
        const blank = doc[layouts].byName('Blank');
        if (!blank.exists()) return false;
        doc.slides[0][property] = blank;
        return true;
    };
    return firstThatWorks([use('slideLayouts', 'baseLayout'), use('masterSlides', 'baseSlide')]);
}

function place(shape) {
    const at = shape.position();
    return {x: at.x, y: at.y, width: shape.width(), height: shape.height()};
}

function isAt(shape, wanted) {
    const found = place(shape);
    return ['x', 'y', 'width', 'height'].every(key => Math.abs(found[key] - wanted[key]) <= 1);
}

// A shape that nobody describes further is a rectangle; there is no `shape type`, and shapes have no id.
function draw(KN, doc, asked) {
    const shapes = doc.slides[0].shapes;
    const before = shapes.length;
    const wanted = {position: {x: asked.x, y: asked.y}, width: asked.width, height: asked.height};
    const made = makeOne(
        shapes,
        before,
        () => shapes.push(KN.Shape(wanted)),
        () => KN.make({new: 'shape', at: shapes, withProperties: wanted})
    );
    if (!made) return {problem: 'not_made'};
    const index = shapes.length - 1; // the order is that of creation
    const shape = shapes[index];
    if (!isAt(shape, asked)) {
        // made, but not as asked: the properties did not get through
        shape.width = asked.width;
        shape.height = asked.height;
        shape.position = wanted.position;
    }
    return Object.assign({index: index + 1}, place(shape)); // object spread is younger than ES2017
}

// The index alone is not enough: it changes when a shape below it is deleted. The place tells whether it is still the one.
function write(doc, asked) {
    const shapes = doc.slides[0].shapes;
    const alike = [];
    for (let i = 0; i < shapes.length; i++) if (isAt(shapes[i], asked)) alike.push(i + 1);
    const index = alike.includes(asked.index) ? asked.index : alike.length === 1 ? alike[0] : null;
    if (index === null) return {problem: 'no_shape'};
    shapes[index - 1].objectText = asked.text;
    return {index: index, text: shapes[index - 1].objectText()};
}

function answer(asked) {
    if (asked.do === 'find') return find();
    const KN = Application(asked.bundle_id);
    if (asked.do === 'open') return open(KN, asked);
    // asking a Keynote that does not run would start it, without the document
    if (!KN.running()) return {problem: 'not_running'};
    if (!KN.documents.id().includes(asked.document_id)) return {problem: 'no_document'};
    const doc = KN.documents.byId(asked.document_id);
    if (asked.do === 'draw') return draw(KN, doc, asked);
    if (asked.do === 'text') return write(doc, asked);
    return {width: doc.width(), height: doc.height(), is_skipped: doc.slides[0].skipped()};
}

function run(argv) {
    const reply = answer(JSON.parse(argv[0]));
    if (failures.length) reply.failures = failures;
    return JSON.stringify(reply);
}
