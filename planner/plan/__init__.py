# SPDX-License-Identifier: Apache-2.0
"""The action plan: its data, order, needs, states, digest, guarantees. Pure."""
