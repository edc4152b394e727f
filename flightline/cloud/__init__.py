"""AWS side of the control plane: run store, publishing, notification. boto3 is imported only where it is used."""
