"""scripts/fleet.sh over a real ssh: four X servers as four hosts, and what a dead or hanging one costs."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import headless
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from worlds import (
    PATIENCE_S,
    ROOT,
    Finished,
    clean_environment,
    need,
    wait_for,
)

from peekaboo_min.system.images import read_image_info

SCRIPT = str(ROOT / "scripts" / "fleet.sh")


@pytest.fixture(scope="module")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The ssh command that reaches an sshd of our own on the loopback."""
    need("sshd", "ssh", "ssh-keygen", "parallel", "Xvfb")
    folder = tmp_path_factory.mktemp("sshd")
    for key in ("host_key", "key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True, timeout=60
        )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = folder / "peekaboo-min"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/scripts/peekaboo.py" "$@"\n')
    program.chmod(0o755)
    options = {
        "Port": port, "ListenAddress": "127.0.0.1", "HostKey": folder / "host_key", "PidFile": "none",
        "AuthorizedKeysFile": folder / "key.pub", "StrictModes": "no", "UsePAM": "no",
        "PasswordAuthentication": "no",
        "SetEnv": f"TMPDIR={folder} PATH={folder}:{os.environ['PATH']}",
    }  # fmt: skip
    config = folder / "sshd_config"
    config.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
    Path("/run/sshd").mkdir(exist_ok=True) if os.getuid() == 0 else None
    sshd = subprocess.run(["sh", "-c", "command -v sshd"], capture_output=True, text=True, timeout=60).stdout
    with headless.running([sshd.strip(), "-D", "-e", "-f", str(config)]):
        wait_for(lambda: is_open(port), "sshd listens", 60)
        yield (
            f"ssh -p {port} -i {folder / 'key'} -F none -o StrictHostKeyChecking=no"
            f" -o UserKnownHostsFile={folder / 'known'} -o LogLevel=ERROR"
        )


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def fleet(ssh: str, tmp_path: Path, *argv: str) -> Finished:
    program = ssh.split(" -i ")[1].split()[0].rpartition("/")[0] + "/peekaboo-min"
    environment = clean_environment(tmp_path, FLEET_SSH=ssh, FLEET_PROGRAM=program)
    done = subprocess.run(
        ["sh", SCRIPT, *argv], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=280
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def host(display: str) -> str:
    return f"{getpass.getuser()}@127.0.0.1/{display}"


def folder_of(display: str) -> str:
    return host(display).replace("/", "_")


def test_a_dead_desktop_costs_only_itself(ssh: str, tmp_path: Path) -> None:
    sizes = {"640x480x24": (640, 480), "800x600x24": (800, 600), "320x240x24": (320, 240)}
    with (
        headless.x_server(False, "640x480x24", with_compositor=False) as first,
        headless.x_server(False, "800x600x24", with_compositor=False) as second,
        headless.x_server(False, "320x240x24", with_compositor=False) as third,
    ):
        ended = ":59999"  # a number that no other test's server takes
        hosts = ",".join(host(display) for display in (first, second, third, ended))
        done = fleet(ssh, tmp_path, "-o", "shots", hosts, "--", "image", "--path", "it's a screen.png")
    lines = dict(line.split("\t", 1) for line in done.out.splitlines())
    assert done.code == 1 and done.err == f"{SCRIPT}: 1 of 4 failed\n"
    for display, size in zip((first, second, third), sizes.values()):
        assert lines[host(display)].startswith("0\t")
        info = read_image_info(tmp_path / "shots" / folder_of(display) / "it's a screen.png")
        assert info is not None and (info.width, info.height) == size
    assert lines[host(ended)].startswith("1\t") and "no X display" in lines[host(ended)]


def test_a_host_that_hangs_or_is_down_is_given_up(ssh: str, tmp_path: Path) -> None:
    """It says so, the others' results are there, and nothing of an earlier run is taken for an answer."""
    stale = tmp_path / "fleet" / "nobody@127.0.0.1_:7"
    stale.mkdir(parents=True)
    (stale / "exit_code").write_text("0\n")
    with headless.x_server(False, with_compositor=False) as display:
        sleeper = tmp_path / "sleeps"
        sleeper.write_text("#!/bin/sh\n[ $DISPLAY = :99 ] && exec sleep 300\necho quick\n")
        sleeper.chmod(0o755)
        hosts = tmp_path / "hosts.txt"
        hosts.write_text(f"{host(display)}  # an office\n\n{host(':99')}\nnobody@127.0.0.1/:7\n")
        environment = clean_environment(tmp_path, FLEET_SSH=ssh, FLEET_PROGRAM=str(sleeper))
        done = subprocess.run(
            ["sh", SCRIPT, "-t", "2", str(hosts), "--", "list", "apps"],
            env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=280,
        )  # fmt: skip
    lines = dict(line.split("\t", 1) for line in done.stdout.splitlines())
    assert lines[host(display)] == "0\tquick"
    assert lines[host(":99")].startswith("124\t")
    assert lines["nobody@127.0.0.1/:7"].startswith("-\tno answer: ")
    assert done.stderr.endswith("2 of 3 failed\n")


@pytest.mark.leaves("tmp/tmp[.].*")  # by the stand-in for ssh
def test_what_a_host_sends_stays_in_its_folder_and_is_no_command_of_a_terminal(tmp_path: Path) -> None:
    """A link of one run is not written through by the next one's archive; the exit code is a number."""
    need("parallel")
    victim = tmp_path / "victim"
    victim.mkdir()
    script = tmp_path / "ssh"
    script.write_text(
        f"""#!/bin/sh
cd "$(mktemp -d)" && printf '\\0331' >exit_code && : >stdout && : >stderr
if mkdir {tmp_path}/second 2>/dev/null; then
    ln -s {victim} link && exec tar -cf - exit_code stdout stderr link
fi
mkdir link && echo written >link/file && exec tar -cf - exit_code stdout stderr link/file
"""
    )
    script.chmod(0o755)
    environment = clean_environment(tmp_path, FLEET_SSH=str(script))
    for _ in range(2):
        done = subprocess.run(
            ["sh", SCRIPT, "box", "--", "windows"],
            env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=280,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (1, "box\t1\t\n"), done.stderr
    assert (tmp_path / "fleet/box/link/file").read_text() == "written\n"
    assert list(victim.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["-oProxyCommand=x", "--", "list", "apps"], "usage: "),
        (["box,../up", "--", "list", "apps"], "not a host: ../up"),
        (["box/:1;reboot", "--", "list", "apps"], "not a host: box/:1;reboot"),
        (["box", "list", "apps"], "usage: "),
        ([",", "--", "list", "apps"], "there is no host in the list"),
    ],
)
def test_what_is_no_host_is_refused(tmp_path: Path, argv: list[str], why: str) -> None:
    need("parallel")
    done = subprocess.run(["sh", SCRIPT, *argv], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, list(tmp_path.iterdir())) == (2, []) and why in done.stderr


def test_a_server_is_started_over_ssh_on_another_machines_display(ssh: str, tmp_path: Path) -> None:
    """As the README says it, for the configuration of a client."""
    program = ssh.split(" -i ")[1].split()[0].rpartition("/")[0] + "/peekaboo-min"

    async def windows(display: str) -> str:
        command, *options = ssh.split()
        far = [f"{getpass.getuser()}@127.0.0.1", "env", f"DISPLAY={display}", program]
        words = StdioServerParameters(command=command, args=[*options, "-T", *far])
        with anyio.fail_after(PATIENCE_S):
            async with stdio_client(words) as (reader, writer), ClientSession(reader, writer) as session:
                await session.initialize()
                answer = await session.call_tool("list_windows", {})
                return answer.content[0].text

    with headless.x_server(False, "640x480x24", with_compositor=False) as display:
        assert anyio.run(windows, display).startswith("0 window(s)")
