"""Rolling updates: a new version of a template in, the exact list of batches out."""
