"""hlo-verify: prove that a partitioned StableHLO program computes what the logical one says."""
