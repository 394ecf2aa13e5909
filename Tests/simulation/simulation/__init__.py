"""A world in one process: devices, people, a server and a network, all from one seed."""
