// pid -> the pid of the process that its grants belong to. Private, so in a child of its own: it may crash.
ObjC.bindFunction('responsibility_get_pid_responsible_for_pid', ['int', ['int']]);

function run(argv) {
    return JSON.stringify(Number($.responsibility_get_pid_responsible_for_pid(JSON.parse(argv[0]))));
}
