"""pytest puts this folder on the path of the tests."""
