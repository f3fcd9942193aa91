# SPDX-License-Identifier: Apache-2.0
from applier.client import Client

plan = Client("http://127.0.0.1:9322").create("etc/examples/host-maintenance.yaml")
plan.start(why="fans are replaced").wait()
print(plan.why("switch-off-compute-1"))
plan.report("report.html")
