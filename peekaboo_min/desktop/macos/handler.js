// {"kind": "app"|"path"|"url", "target": text} -> {"app": {name, shown_name, bundle_id, path}|null, "installed": [the same]}
// shown_name: the name in the user's language if it is another one, such as "Rechner" for Calculator; else "".
// app: the application that opens the target; for the kind "app", only if the target is a bundle id.
// installed: all applications if no bundle id matched, else empty. Starts nothing.
// Comes after window_list.js.
const FOLDERS = ['/Applications', '/Applications/Utilities', '/System/Applications', '/System/Applications/Utilities',
    '/System/Library/CoreServices/Applications', '~/Applications'];
const FINDER = '/System/Library/CoreServices/Finder.app';

function describeApp(path) {
    const bundle = $.NSBundle.bundleWithPath($(path));
    const id = isNil(bundle) ? null : textOf(bundle.bundleIdentifier);
    const shown = textOf($.NSFileManager.defaultManager.displayNameAtPath($(path)));
    const [name, shownName] = [path.split('/').pop(), shown || ''].map(text => text.replace(/\.app$/, ''));
    return {name: name, shown_name: shownName === name ? '' : shownName, bundle_id: id, path: path};
}

function appAt(url) {
    return isNil(url) ? null : describeApp(url.path.js);
}

function listInstalled() {
    const paths = [FINDER];
    for (const name of FOLDERS) {
        const folder = $(name).stringByExpandingTildeInPath;
        const files = $.NSFileManager.defaultManager.contentsOfDirectoryAtPathError(folder, null);
        for (let i = 0; !isNil(files) && i < Number(files.count); i++) {
            const file = files.objectAtIndex(i).js;
            if (/\.app$/.test(file)) paths.push(`${folder.js}/${file}`);
        }
    }
    return paths.map(describeApp);
}

function run(argv) {
    const {kind, target} = readRequest(argv);
    const workspace = $.NSWorkspace.sharedWorkspace;
    if (kind === 'app') {
        const app = appAt(workspace.URLForApplicationWithBundleIdentifier($(target)));
        return JSON.stringify({app: app, installed: app ? [] : listInstalled()});
    }
    const url = kind === 'url' ? $.NSURL.URLWithString($(target)) : $.NSURL.fileURLWithPath($(target));
    return JSON.stringify({app: isNil(url) ? null : appAt(workspace.URLForApplicationToOpenURL(url)), installed: []});
}
