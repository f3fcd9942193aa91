# SPDX-License-Identifier: Apache-2.0
"""Action types, registered under ``actionplan.actions``; one kind of thing a file."""
