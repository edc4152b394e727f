"""The node's part in Kubernetes: what the checks say of it becomes taints, a condition and Events of its own Node.

It has no rules of its own: the checks judge, the watcher finds, and this room tells the API server. Standard library
only, and no rights but those over the Node that the token is bound to.
"""
