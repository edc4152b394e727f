"""What reaches other machines: the collection and the wheel elsewhere, the node library on every Python: `make delivery`."""
