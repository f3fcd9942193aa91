# SPDX-License-Identifier: Apache-2.0
"""The command line: one class for each verb.

A verb parses its arguments, calls the planner or the runner, and writes the result.
"""
