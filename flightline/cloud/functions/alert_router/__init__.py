"""Tells people about alarms and EC2 events, with the state of the node."""
