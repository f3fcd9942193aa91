# SPDX-License-Identifier: Apache-2.0
# The HTTP API of ActionPlan in gunicorn:
#
#     gunicorn --config gunicorn.conf.py applier.api:application
#
# The configuration is the watcher.conf of the user, or /etc/watcher/watcher.conf.

bind = "127.0.0.1:9322"
workers = 2
worker_class = "gthread"
threads = 64
