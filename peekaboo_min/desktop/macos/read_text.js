// {"path": file} -> {"lines": [{text, confidence, x, y, width, height}]}: boxes as fractions of the image, origin top left.
ObjC.import('Foundation');
ObjC.import('Vision');

function run(argv) {
    const url = $.NSURL.fileURLWithPath($(JSON.parse(argv[0]).path));
    const request = $.VNRecognizeTextRequest.alloc.init;
    request.recognitionLevel = 0; // accurate
    request.usesLanguageCorrection = true;
    request.automaticallyDetectsLanguage = true; // macOS 13; else it knows the letters of one language
    const handler = $.VNImageRequestHandler.alloc.initWithURLOptions(url, $());
    if (!handler.performRequestsError($([request]), null)) throw new Error('Vision could not read the image');
    const lines = [];
    for (let i = 0; i < Number(request.results.count); i++) {
        const found = request.results.objectAtIndex(i);
        const best = found.topCandidates(1).firstObject;
        const box = found.boundingBox;
        lines.push({
            text: best.string.js,
            confidence: Number(best.confidence),
            x: box.origin.x,
            y: 1 - box.origin.y - box.size.height, // Vision counts upwards
            width: box.size.width,
            height: box.size.height,
        });
    }
    return JSON.stringify({lines: lines});
}
