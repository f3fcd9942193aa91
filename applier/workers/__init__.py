# SPDX-License-Identifier: Apache-2.0
"""One plan over many machines: its actions run at workers, and the record tells what becomes."""
