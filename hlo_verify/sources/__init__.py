"""What a user points at: shardings files, dump folders, folders of Neuron graphs, settings in pyproject.toml."""
