"""Action types: one file each, registered under ``watcher_actions``."""
