# SPDX-License-Identifier: Apache-2.0
"""Rolling updates: from two versions of a template to the exact list of batches."""
