"""What happened to each sick node, and where it is kept: incidents, the lease, how long they took, who is told."""
