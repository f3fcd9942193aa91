# SPDX-License-Identifier: Apache-2.0
"""Metadata, entry points and extras stand in setup.cfg."""

import sys

# Before anything that an old Python does not know: pip tells of python_requires only for wheels.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("ActionPlan needs Python 3.11 or newer; this is Python " + sys.version.split()[0])

from setuptools import setup

setup()
