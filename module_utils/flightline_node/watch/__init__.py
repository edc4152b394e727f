"""The watcher of a node: follows its logs, tools and counters, and takes the node out of service by itself.

It has no rules of its own: the library's parsers read and its checks judge, as in a preflight.
"""
