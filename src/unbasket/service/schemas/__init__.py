"""What requests and answers look like, which handlers work with and OpenAPI describes."""
