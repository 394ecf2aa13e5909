"""Mutation testing: small faults in Sources, each of which some test has to notice."""
