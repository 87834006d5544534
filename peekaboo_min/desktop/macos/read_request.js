// Comes before all other sources: reads the request from a private file and deletes it. As an argument, every user could read it.
ObjC.import('Foundation');

const UTF8 = 4; // NSUTF8StringEncoding

function readRequest(argv) {
    const path = $(argv[0]);
    const request = JSON.parse($.NSString.stringWithContentsOfFileEncodingError(path, UTF8, null).js);
    $.NSFileManager.defaultManager.removeItemAtPathError(path, null);
    return request;
}
