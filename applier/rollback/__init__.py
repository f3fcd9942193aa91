# SPDX-License-Identifier: Apache-2.0
"""Makes the plan that undoes what another plan did: pure."""
