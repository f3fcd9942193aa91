# SPDX-License-Identifier: Apache-2.0
"""Suites that every implementation of a contract has to pass, ours and those of third parties."""
