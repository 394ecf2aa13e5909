"""A simulated world in one process: devices, people, a server and a network, from one seed."""
