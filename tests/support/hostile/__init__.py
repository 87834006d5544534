"""Parts of the trials: X clients that report the input they receive, a raw MCP client, the drivers."""
