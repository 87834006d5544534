"""Build the package with setuptools and a fixed date, so that two builds of one source are equal."""

import os

from setuptools.build_meta import *  # noqa: F403

# a zip file cannot hold a date before 1980; 2020-01-01 says that this is none
os.environ.setdefault("SOURCE_DATE_EPOCH", "1577836800")
