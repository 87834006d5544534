// pid -> the pid of the process whose permissions count for it. Uses a private function, which may crash this process.
ObjC.bindFunction('responsibility_get_pid_responsible_for_pid', ['int', ['int']]);

function run(argv) {
    return JSON.stringify(Number($.responsibility_get_pid_responsible_for_pid(JSON.parse(argv[0]))));
}
