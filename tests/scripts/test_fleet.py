"""scripts/fleet.sh over a real ssh, with X servers as hosts."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from worlds import ROOT, Finished, Program, clean_environment, executable, group_of, need, wait_for, x_server

from peekaboo_min.system.image_files import whole_image

SCRIPT = str(ROOT / "scripts" / "fleet.sh")


@pytest.fixture(scope="module")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Start an sshd on the loopback; yield fleet.sh's variables for it."""
    need("sshd", "ssh", "ssh-keygen", "parallel", "Xvfb")
    folder = tmp_path_factory.mktemp("sshd")
    for key in ("host_key", "key"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(argv, check=True, timeout=60)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = f'exec "{sys.executable}" "{ROOT}/scripts/peekaboo.py" "$@"'
    program = executable(folder / "peekaboo-min", script)
    config = folder / "sshd_config"
    config.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/key.pub\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
        f"SetEnv TMPDIR={folder} PATH={folder}:{os.environ['PATH']}\n"
    )
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    with group_of([str(shutil.which("sshd")), "-D", "-e", "-f", str(config)]):
        wait_for(lambda: is_open(port), "sshd listens", 60)
        options = f"-o StrictHostKeyChecking=no -o UserKnownHostsFile={folder / 'known'} -o LogLevel=ERROR"
        ssh = f"ssh -p {port} -i {folder / 'key'} -F none {options}"
        yield {"FLEET_SSH": ssh, "FLEET_PROGRAM": str(program)}


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def fleet(tmp_path: Path, *argv: str, **variables: str) -> Finished:
    program = Program(["sh", SCRIPT], clean_environment(tmp_path, **variables))
    return program.run(*argv, folder=tmp_path, timeout_s=280)


def host(display: str) -> str:
    return f"{getpass.getuser()}@127.0.0.1/{display}"


def test_fleet_fails_only_for_the_dead_desktop(ssh: dict[str, str], tmp_path: Path) -> None:
    sizes = [(640, 480), (800, 600)]
    ended = ":59999"  # no other test uses this number
    with ExitStack() as stack:
        displays = [stack.enter_context(x_server(f"{width}x{height}")) for width, height in sizes]
        hosts = ",".join(map(host, [*displays, ended]))
        argv = ["-o", "shots", hosts, "--", "image", "--path", "it's a screen.png"]
        done = fleet(tmp_path, *argv, **ssh)
    lines = dict(line.split("\t", 1) for line in done.out.splitlines())
    assert done.code == 1 and done.err == f"{SCRIPT}: 1 of 3 failed\n"
    for display, size in zip(displays, sizes):
        assert lines[host(display)].startswith("0\t")
        path = tmp_path / "shots" / host(display).replace("/", "_") / "it's a screen.png"
        info = whole_image(path.read_bytes())
        assert info is not None and (info.width, info.height) == size
    assert lines[host(ended)].startswith("1\t") and "no X display" in lines[host(ended)]


def test_fleet_reports_a_hanging_or_unreachable_host(ssh: dict[str, str], tmp_path: Path) -> None:
    """Keep the other hosts' results, and ignore files of an earlier run."""
    stale = tmp_path / "fleet" / "nobody@127.0.0.1_:7"
    stale.mkdir(parents=True)
    (stale / "exit_code").write_text("0\n")
    with x_server() as display:
        sleeper = executable(tmp_path / "sleeps", "[ $DISPLAY = :99 ] && exec sleep 300; echo quick")
        hosts = tmp_path / "hosts.txt"
        hosts.write_text(f"{host(display)}  # an office\n\n{host(':99')}\nnobody@127.0.0.1/:7\n")
        argv = ["-t", "2", str(hosts), "--", "list", "apps"]
        done = fleet(tmp_path, *argv, **{**ssh, "FLEET_PROGRAM": str(sleeper)})
    lines = dict(line.split("\t", 1) for line in done.out.splitlines())
    assert lines[host(display)] == "0\tquick"
    assert lines[host(":99")].startswith("124\t")
    assert lines["nobody@127.0.0.1/:7"].startswith("-\tno answer: ")
    assert done.err.endswith("2 of 3 failed\n")


@pytest.mark.leaves("tmp/tmp[.].*")  # by the fake ssh
def test_fleet_writes_a_hosts_files_only_into_its_folder(tmp_path: Path) -> None:
    """Do not write through a link of an earlier run; drop an exit code that is no number."""
    need("parallel")
    victim = tmp_path / "victim"
    victim.mkdir()
    answer = f"""cd "$(mktemp -d)" && printf '\\0331' >exit_code && : >stdout && : >stderr
if mkdir {tmp_path}/second 2>/dev/null; then
    ln -s {victim} link && exec tar -cf - exit_code stdout stderr link
fi
mkdir link && echo written >link/file && exec tar -cf - exit_code stdout stderr link/file"""
    script = executable(tmp_path / "ssh", answer)
    for _ in range(2):
        done = fleet(tmp_path, "box", "--", "windows", FLEET_SSH=str(script))
        assert (done.code, done.out) == (1, "box\t1\t\n"), done.err
    assert (tmp_path / "fleet/box/link/file").read_text() == "written\n"
    assert list(victim.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        ("-oProxyCommand=x -- list apps", "usage: "),
        ("box list apps", "usage: "),
        ("box,../up -- list apps", "not a host: ../up"),
        ("box/:1;reboot -- list apps", "not a host: box/:1;reboot"),
        (", -- list apps", "there is no host in the list"),
    ],
)
def test_fleet_refuses_an_invalid_host_list(tmp_path: Path, argv: str, why: str) -> None:
    need("parallel")
    done = fleet(tmp_path, *argv.split())
    assert done.code == 2 and why in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "state", "tmp"]


def test_container_installs_the_packages_of_setup() -> None:
    """Compare with setup.sh's list, without the demo's tk."""
    (needed,) = re.findall(r"need_desktop\(\).*?\"\$@\"", (ROOT / "scripts/setup.sh").read_text(), re.S)
    packages = set(re.findall(r"[\w./]+:([\w-]+)", needed)) - {"tk", "PACKAGE"}
    (line,) = re.findall(r"apt-get install(.*?)&&", (ROOT / "scripts/Containerfile").read_text(), re.S)
    assert packages | {"at-spi2-core", "python3-gi", "gir1.2-atspi-2.0"} <= {*line.split()}
    assert len(packages) >= 9
    copied = re.findall(r"^!(.+)$", (ROOT / "scripts/Containerfile.dockerignore").read_text(), re.M)
    assert {path for path in copied if (ROOT / path).exists()} == {*copied}
