# SPDX-License-Identifier: Apache-2.0
"""Clouds that actions work on: each implements ``applier.contracts.clouds.Cloud``."""
