"""What happens to a traced kernel before either back end: it is verified, pruned and planned."""
