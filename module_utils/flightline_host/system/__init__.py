"""The host itself: files, units, disks, networks, and questions about them."""
