# SPDX-License-Identifier: Apache-2.0
"""Rolling updates: two versions of a template become a plan of batches that replace members."""
