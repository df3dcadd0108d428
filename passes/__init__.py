"""The passes, in the order in which a module flows through them. Installed as `hlo_verify.passes`."""
