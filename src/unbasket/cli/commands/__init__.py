"""One module per command. A command calls the library and prints the result; it decides nothing."""
