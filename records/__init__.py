"""Records of cells and the folders that hold them."""
