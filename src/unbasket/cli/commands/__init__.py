"""One module per command. A command asks the library and prints; it decides nothing."""
