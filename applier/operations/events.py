# SPDX-License-Identifier: Apache-2.0
"""The subscription of those who read events from the record."""

#: The name of the subscription that all readers share.
READERS = "readers"
