"""python -m peekaboo_min, or this file by its path.

By its path it is safe in any folder: that is how configurations and our own children start it.
"""

import sys

if __name__ == "__main__":
    # sys.path[0] is the working folder (-m) or this file's folder (by its path). Neither may provide a module
    # that we or mcp import. Our own modules are found by the package's __path__, also if the package is in
    # the working folder.
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        del sys.path[0]
    if not __package__:
        import os.path  # Python has already loaded it

        sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        import peekaboo_min  # noqa: F401  its __init__ imports nothing

        del sys.path[0]
    from peekaboo_min.frontends.cli import start

    start()
