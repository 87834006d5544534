"""Build the package with setuptools and a fixed date, so that two builds of one source are equal."""

import os

from setuptools.build_meta import *  # noqa: F403

# any fixed date will do; a zip file cannot hold one before 1980
os.environ.setdefault("SOURCE_DATE_EPOCH", "1577836800")
