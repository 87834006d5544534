"""What the trials are made of: X clients that report what reached them, a raw MCP client, the drivers."""
