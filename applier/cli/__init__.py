"""The command line: a class per verb, which parses, calls planner.planning or the runner, shows."""
