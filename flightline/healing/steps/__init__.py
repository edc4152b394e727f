"""What healing asks of the world: the scheduler, the nodes, EC2 and the preflight that proves."""
