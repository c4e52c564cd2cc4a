"""What the routes do: a checked request in, a response out."""
