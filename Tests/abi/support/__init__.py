"""A phone, its app, its user and its network, for tests through the public C API."""
