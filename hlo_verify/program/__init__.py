"""What a module is: its operations, its mesh and shardings, its element types, and two modules as a pair."""
