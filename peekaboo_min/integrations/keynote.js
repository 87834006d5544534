// One JSON request in, JSON out, by its "do":
// {"do": "find"} -> {"bundle_id": text}, or {"problem": "not_installed"}. Sends nothing to Keynote.
// {"do": "open", bundle_id, only_open, theme, always_new, width, height} -> {document_id, name, is_new, has_theme, is_blank, width, height}
//   only_open: use a document that is already open, without activating Keynote or creating a document.
// {"do": "size", bundle_id, document_id} -> {width, height, is_skipped} of slide 1
// {"do": "draw", bundle_id, document_id, x, y, width, height} -> {index, x, y, width, height}, as Keynote placed it
// {"do": "text", bundle_id, document_id, index, x, y, width, height, text} -> {text}, as Keynote stored it
// All but "find" may return {"problem": "not_running"|"no_deck"|"no_document"|"no_shape"} instead.
ObjC.import('AppKit');

// Keynote 15 has its own bundle id. Both versions can be installed, and both are named Keynote.
const BUNDLE_IDS = ['com.apple.Keynote', 'com.apple.iWork.Keynote'];
// Errors of a Keynote that is still starting: not running (-600), connection invalid (-609), no such document (-1728, -1719).
const STARTING = [-600, -609, -1728, -1719];
const RETRY_S = 0.2, MAX_RETRIES = 50; // up to 10 s

function retryWhileStarting(work) {
    for (let left = MAX_RETRIES; ; left--) {
        try {
            return work();
        } catch (e) {
            if (left === 0 || !STARTING.includes(e.errorNumber)) throw e;
        }
        $.NSThread.sleepForTimeInterval(RETRY_S);
    }
}

// Asks Launch Services: addressing an application that is not installed would open the dialog "Where is Keynote?".
function find() {
    const workspace = $.NSWorkspace.sharedWorkspace;
    const installed = BUNDLE_IDS.find(id => !workspace.URLForApplicationWithBundleIdentifier(id).isNil());
    return installed ? {bundle_id: installed} : {problem: 'not_installed'};
}

function open(KN, request) {
    // a Keynote without windows may have quit since the last call
    const idsBefore = retryWhileStarting(() => {
        if (!request.only_open) KN.activate();
        return KN.documents.id();
    });
    if (request.only_open && idsBefore.length === 0) return {problem: 'no_deck'};
    const isNew = request.always_new || idsBefore.length === 0;
    const hasTheme = !isNew || createDocument(KN, request);
    const id = isNew ? KN.documents.id().find(id => !idsBefore.includes(id)) : idsBefore[0]; // the first document is in front
    if (id === undefined) throw new Error('Keynote created no document');
    const doc = KN.documents.byId(id);
    const size = retryWhileStarting(() => ({width: doc.width(), height: doc.height()}));
    const isBlank = !isNew || removePlaceholders(doc);
    doc.currentSlide = doc.slides[0];
    return {document_id: id, name: doc.name(), is_new: isNew, has_theme: hasTheme, is_blank: isBlank, width: size.width, height: size.height};
}

// Returns true if Keynote has the requested theme; the names of themes are localised. Sets the size: the default is 1024x768.
function createDocument(KN, request) {
    const properties = {width: request.width, height: request.height};
    const theme = KN.themes.byName(request.theme);
    const hasTheme = theme.exists();
    if (hasTheme) properties.documentTheme = theme;
    KN.documents.push(KN.Document(properties));
    return hasTheme;
}

// Applies the layout Blank to slide 1. Returns false if there is none: its name is localised, and before 2020 layouts were
// `masterSlides`, which later versions do not know (-1700).
function removePlaceholders(doc) {
    try {
        doc.slides[0].baseLayout = doc.slideLayouts.byName('Blank');
        return true;
    } catch (e) {
        return false;
    }
}

function frameOf(shape) {
    const position = shape.position();
    return {x: position.x, y: position.y, width: shape.width(), height: shape.height()};
}

function isAt(shape, target) {
    const frame = frameOf(shape);
    return ['x', 'y', 'width', 'height'].every(key => Math.abs(frame[key] - target[key]) <= 1);
}

// A new shape is a rectangle by default; scripts cannot set the shape type, and shapes have no id. Creating text items, images and
// tables like this works in Keynote 14.5 from JXA; creating shapes was NOT VERIFIED on a Mac.
function draw(KN, doc, target) {
    const shapes = doc.slides[0].shapes;
    const countBefore = shapes.length;
    shapes.push(KN.Shape({position: {x: target.x, y: target.y}, width: target.width, height: target.height}));
    // shapes are in the order of their creation; this index fails if none was created
    return Object.assign({index: countBefore + 1}, frameOf(shapes[countBefore])); // object spread is younger than ES2017
}

// Finds the shape by its frame, because its index changes if a shape below it is deleted. If several shapes have this frame, takes
// the one with the old index or none.
function write(doc, target) {
    const shapes = doc.slides[0].shapes;
    const matches = []; // indexes, from 1
    for (let i = 0; i < shapes.length; i++) if (isAt(shapes[i], target)) matches.push(i + 1);
    const hasOldIndex = matches.includes(target.index);
    if (matches.length !== 1 && !hasOldIndex) return {problem: 'no_shape'};
    const shape = shapes[(hasOldIndex ? target.index : matches[0]) - 1];
    shape.objectText = target.text;
    return {text: shape.objectText()};
}

function reply(request) {
    if (request.do === 'find') return find();
    const KN = Application(request.bundle_id);
    if (request.do === 'open' && !request.only_open) return open(KN, request);
    // any other question would start a Keynote that does not run, without the document
    if (!KN.running()) return {problem: request.only_open ? 'no_deck' : 'not_running'};
    if (request.do === 'open') return open(KN, request);
    if (!KN.documents.id().includes(request.document_id)) return {problem: 'no_document'};
    const doc = KN.documents.byId(request.document_id);
    if (request.do === 'draw') return draw(KN, doc, request);
    if (request.do === 'text') return write(doc, request);
    return {width: doc.width(), height: doc.height(), is_skipped: doc.slides[0].skipped()};
}

function run(argv) {
    return JSON.stringify(reply(readRequest(argv)));
}
