# SPDX-License-Identifier: Apache-2.0
"""Playbooks: plans of the calls of Ansible that run a playbook play by play.

``plays`` reads what a play says of its hosts and batches, ``planner`` cuts it into calls and links
them. Ansible itself tells the hosts: planner/documents/playbook.py.
"""
