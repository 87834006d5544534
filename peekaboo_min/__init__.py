"""Eyes and hands for AI agents on a desktop, by the programs it has already."""

from .version import VERSION as __version__  # noqa: F401
