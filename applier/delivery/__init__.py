# SPDX-License-Identifier: Apache-2.0
"""Delivers events to receivers: webhooks, files, a message bus. At least once, in order by plan."""
