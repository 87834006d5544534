"""resources/list and resources/read: the images that results link to, while they live, and nothing else."""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from fakemac import FakeMac
from macs import mac_environment
from mcp_server import serving


def test_a_linked_image_can_be_read_while_it_lives_and_nothing_else_can(mac: FakeMac, tmp_path: Path) -> None:
    """ "出力: `structuredContent` + `content` (text/resource)" """
    with serving("package", mac_environment(mac)) as server:
        server.shake_hands()
        assert server.ask("resources/list")["result"]["resources"] == []
        (link,) = [
            block
            for block in server.call("screenshot_app_window", appName="Calculator")["content"]
            if block["type"] == "resource_link"
        ]
        path = Path(unquote(urlsplit(link["uri"]).path))
        (listed,) = server.ask("resources/list")["result"]["resources"]
        assert listed == {"uri": link["uri"], "name": path.name, "mimeType": "image/png"}
        (content,) = server.ask("resources/read", {"uri": link["uri"]})["result"]["contents"]
        assert (content["uri"], content["mimeType"]) == (link["uri"], "image/png")
        assert base64.b64decode(content["blob"]) == path.read_bytes()

        other = tmp_path / "other.png"
        other.write_bytes(path.read_bytes())
        path.unlink()
        for uri in (
            other.as_uri(),
            "file:///etc/passwd",
            f"{link['uri']}/../{path.name}",
            "x:y",
            link["uri"],
        ):
            assert "error" in server.ask("resources/read", {"uri": uri})
        assert server.ask("resources/list")["result"]["resources"] == []


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
def test_an_older_client_gets_the_path_and_no_link(mac: FakeMac, version: str) -> None:
    """ "{path, uri, appName, rect, scale, format}" """
    with serving("package", mac_environment(mac)) as server:
        server.shake_hands(version)
        answer = server.call("screenshot_app_window", appName="Calculator")
        assert [block["type"] for block in answer["content"]] == ["text"]
        assert '"path":"' in answer["content"][0]["text"]
