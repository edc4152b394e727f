"""What configures and verifies a GPU host; the modules in library/ are thin shells over it.

Standard library only, Python 3.8 or later: Ansible ships these files to the node.
"""
