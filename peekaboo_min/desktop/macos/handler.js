// {"kind": "app"|"path"|"url", "target": text} -> {"found": {name, bundle_id, path}|null, "installed": [...]}: the application that
// opens it. For a name of an application `installed` has all that are, else nothing. Starts nothing.
// Comes after window_list.js.
const FOLDERS = ['/Applications', '/Applications/Utilities', '/System/Applications', '/System/Applications/Utilities',
    '/System/Library/CoreServices/Applications', '~/Applications'];
const FINDER = '/System/Library/CoreServices/Finder.app';

function about(path) {
    const bundle = $.NSBundle.bundleWithPath($(path));
    const id = isNil(bundle) ? null : textOf(bundle.bundleIdentifier);
    return {name: path.split('/').pop().replace(/\.app$/, ''), bundle_id: id, path: path};
}

function aboutUrl(url) {
    return isNil(url) ? null : about(url.path.js);
}

function installed() {
    const paths = [FINDER];
    for (const name of FOLDERS) {
        const folder = $(name).stringByExpandingTildeInPath;
        const files = $.NSFileManager.defaultManager.contentsOfDirectoryAtPathError(folder, null);
        for (let i = 0; !isNil(files) && i < Number(files.count); i++) {
            const file = files.objectAtIndex(i).js;
            if (/\.app$/.test(file)) paths.push(`${folder.js}/${file}`);
        }
    }
    return paths.map(about);
}

function run(argv) {
    const {kind, target} = JSON.parse(argv[0]);
    const workspace = $.NSWorkspace.sharedWorkspace;
    if (kind === 'app') {
        const found = aboutUrl(workspace.URLForApplicationWithBundleIdentifier($(target)));
        return JSON.stringify({found: found, installed: found ? [] : installed()});
    }
    const url = kind === 'url' ? $.NSURL.URLWithString($(target)) : $.NSURL.fileURLWithPath($(target));
    return JSON.stringify({found: isNil(url) ? null : aboutUrl(workspace.URLForApplicationToOpenURL(url)), installed: []});
}
