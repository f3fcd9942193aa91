# SPDX-License-Identifier: Apache-2.0
"""Action types: one file each, registered under ``actionplan.actions``."""
