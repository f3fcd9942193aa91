"""Metadata, entry points and extras stand in setup.cfg."""

from setuptools import setup

setup()
