"""Lambda functions, one folder each. At run time they need boto3 and the standard library only (Python 3.12)."""
