"""What a cluster costs, where capacity is to be had, and what still costs when it is gone."""
