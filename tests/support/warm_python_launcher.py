"""What a test starts as its Python: warm_python_launcher.py SOCKET ARGUMENT...; see warm_python.py.

It gives the server all that a process inherits, passes signals on, and ends as the fork does. Only built-in
modules: the start of this program is most of what a start costs.
"""

import _signal
import _socket
import array
import marshal
import posix
import sys

PASSED_ON = (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP)


def main() -> None:
    pid = 0
    early = []  # what came before the fork was known

    def pass_on(number: int, _frame: object) -> None:
        if not pid:
            early.append(number)
            return
        try:  # noqa: SIM105 - contextlib is no built-in module
            posix.kill(pid, number)
        except ProcessLookupError:
            pass  # it has just ended

    for number in PASSED_ON:
        _signal.signal(number, pass_on)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(sys.argv[1])
    inherited = marshal.dumps((sys.argv[2:], dict(posix.environ), posix.getcwd()))
    files = array.array("i", [0, 1, 2])
    request = len(inherited).to_bytes(4, "big") + inherited
    sent = connection.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
    while sent < len(request):
        sent += connection.send(request[sent:])
    for file in files:
        posix.close(file)  # a pipe has an end when the fork closes it
    pid = read_number(connection)
    for number in early:
        pass_on(number, None)
    code = read_number(connection)
    if code < 0:
        if -code in PASSED_ON:
            _signal.signal(-code, _signal.SIG_DFL)
        posix.kill(posix.getpid(), -code)
    posix._exit(code if code >= 0 else 128 - code)


def read_number(connection: _socket.socket) -> int:
    """A line of decimal digits; 1 where the server is gone."""
    line = b""
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            posix._exit(1)
        line += byte
    return int(line)


main()
