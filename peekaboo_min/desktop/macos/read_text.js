// {"path": file, "characters": bool} -> {"lines": [{text, confidence, x, y, width, height}]}
// Boxes are fractions of the image, from the top left. characters: find single characters, perhaps twice, in overlapping parts.
ObjC.import('Foundation');
ObjC.import('Vision');

const ACCURATE = 0, FAST = 1; // VNRequestTextRecognitionLevel: by lines and words, or by single characters
const PARTS = 4, OVERLAP = 1 / 16; // in each direction; the overlap, as a part of the image, is more than a character

function run(argv) {
    const {path, characters} = readRequest(argv);
    const handler = $.VNImageRequestHandler.alloc.initWithURLOptions($.NSURL.fileURLWithPath($(path)), $());
    const own = new Set([...ObjC.deepUnwrap($.NSLocale.preferredLanguages), 'en'].map(name => name.split('-')[0]));
    const lines = [];
    for (const [x, y, width, height] of characters ? partsOfImage() : [[0, 0, 1, 1]]) {
        const request = $.VNRecognizeTextRequest.alloc.init;
        request.recognitionLevel = characters ? FAST : ACCURATE;
        request.usesLanguageCorrection = !characters;
        request.automaticallyDetectsLanguage = true; // macOS 13
        const known = ObjC.deepUnwrap(request.supportedRecognitionLanguagesAndReturnError(null)); // it fails for others
        request.recognitionLanguages = $([...own].flatMap(name => known.filter(code => code.split('-')[0] === name)));
        if (characters) request.regionOfInterest = $.NSMakeRect(x, y, width, height);
        if (!handler.performRequestsError($([request]), null)) throw new Error('Vision could not read the image');
        for (let i = 0; i < Number(request.results.count); i++) {
            const result = request.results.objectAtIndex(i);
            const best = result.topCandidates(1).firstObject;
            const box = result.boundingBox; // as fractions of the region, with the origin at the bottom left
            lines.push({
                text: best.string.js,
                confidence: Number(best.confidence),
                x: x + box.origin.x * width,
                y: 1 - y - (box.origin.y + box.size.height) * height,
                width: box.size.width * width,
                height: box.size.height * height,
            });
        }
    }
    return JSON.stringify({lines: lines});
}

function partsOfImage() {
    const starts = [...Array(PARTS).keys()].map(index => index / PARTS);
    const length = start => Math.min(1 - start, 1 / PARTS + OVERLAP); // Vision fails for a region beyond the image
    return starts.flatMap(y => starts.map(x => [x, y, length(x), length(y)]));
}
