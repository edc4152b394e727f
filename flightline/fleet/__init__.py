"""What only shows across nodes, the root causes, and the fleet's verdict. Pure."""
