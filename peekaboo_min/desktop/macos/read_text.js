// {"path": file, "characters": bool} -> {"lines": [{text, confidence, x, y, width, height}]}: boxes as fractions of the image, origin top left.
// characters: those that stand alone, looked for in overlapping parts of the image; one may be there more than once.
ObjC.import('Foundation');
ObjC.import('Vision');

const PARTS = 4;
const OVERLAP = 1 / 16;

function run(argv) {
    const {path, characters} = JSON.parse(argv[0]);
    const handler = $.VNImageRequestHandler.alloc.initWithURLOptions($.NSURL.fileURLWithPath($(path)), $());
    const lines = [];
    for (const [x, y, width, height] of characters ? partsOfImage() : [[0, 0, 1, 1]]) {
        const request = $.VNRecognizeTextRequest.alloc.init;
        // 0: accurate, looks for lines and words; 1: fast, looks for one character after the other
        request.recognitionLevel = characters ? 1 : 0;
        request.usesLanguageCorrection = !characters;
        request.automaticallyDetectsLanguage = true; // macOS 13; else it knows the letters of one language
        if (characters) request.regionOfInterest = $.NSMakeRect(x, y, width, height);
        if (!handler.performRequestsError($([request]), null)) throw new Error('Vision could not read the image');
        for (let i = 0; i < Number(request.results.count); i++) {
            const found = request.results.objectAtIndex(i);
            const best = found.topCandidates(1).firstObject;
            const box = found.boundingBox; // a fraction of the region
            lines.push({
                text: best.string.js,
                confidence: Number(best.confidence),
                x: x + box.origin.x * width,
                y: 1 - y - (box.origin.y + box.size.height) * height, // Vision counts upwards
                width: box.size.width * width,
                height: box.size.height * height,
            });
        }
    }
    return JSON.stringify({lines: lines});
}

// A part outside of the image would fail.
function partsOfImage() {
    const starts = [...Array(PARTS).keys()].map((at) => at / PARTS);
    const length = (start) => Math.min(1 - start, 1 / PARTS + OVERLAP);
    return starts.flatMap((y) => starts.map((x) => [x, y, length(x), length(y)]));
}
