"""Pairs of modules of any size: a decoder's train step by layers and devices, and meshes of a given pair scaled up."""
