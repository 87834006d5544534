"""resources/list and resources/read: the images that results link to, while they live, and nothing else."""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fakemac import FakeMac
from macs import mac_environment
from mcp_server import serving


def test_resources_are_linked_images_while_they_live(mac: FakeMac, tmp_path: Path) -> None:
    """ "出力: `structuredContent` + `content` (text/resource)" """
    with serving("package", mac_environment(mac)) as server:
        server.shake_hands()
        assert server.ask("resources/list")["result"]["resources"] == []
        answer = server.call("screenshot_app_window", appName="Calculator")
        (link,) = [block for block in answer["content"] if block["type"] == "resource_link"]
        path = Path(unquote(urlsplit(link["uri"]).path))
        (listed,) = server.ask("resources/list")["result"]["resources"]
        assert listed == {"uri": link["uri"], "name": path.name, "mimeType": "image/png"}
        (content,) = server.ask("resources/read", {"uri": link["uri"]})["result"]["contents"]
        assert (content["uri"], content["mimeType"]) == (link["uri"], "image/png")
        assert base64.b64decode(content["blob"]) == path.read_bytes()

        other = tmp_path / "other.png"
        other.write_bytes(path.read_bytes())
        path.unlink()
        climbing = f"{link['uri']}/../{path.name}"
        for uri in (other.as_uri(), "file:///etc/passwd", climbing, "x:y", link["uri"]):
            assert "error" in server.ask("resources/read", {"uri": uri})
        assert server.ask("resources/list")["result"]["resources"] == []
