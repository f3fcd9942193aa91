# SPDX-License-Identifier: Apache-2.0
"""Metadata, entry points and extras stand in setup.cfg."""

from setuptools import setup

setup()
