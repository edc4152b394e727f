"""Nodes whose answers are broken, endless or lies. The answers are invented; Ansible, the gate and the store are real."""
