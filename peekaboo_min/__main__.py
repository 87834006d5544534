"""python -m peekaboo_min, or this file by its path.

By its path it is safe in any folder: that is how configurations and our own children start it.
"""

import sys

if __name__ == "__main__":
    # Python put first: for -m the working folder, for a path this file's folder. Neither may stand in for
    # a module that we or mcp import. Our own modules are found by the package's __path__, also where the
    # package lies in the working folder.
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        del sys.path[0]
    if not __package__:
        import os.path  # loaded since Python's start

        sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        import peekaboo_min  # noqa: F401  its __init__ imports nothing

        del sys.path[0]
    from peekaboo_min.frontends.cli import start

    start()
