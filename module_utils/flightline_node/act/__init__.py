"""What is done on a node: a step of healing, EC2's notice handed on to training, a data set's files brought from S3."""
