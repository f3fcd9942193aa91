# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas: checks of values, sentences for what does not fit, ranges, references, secrets."""
