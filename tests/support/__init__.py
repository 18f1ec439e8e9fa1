"""What the scripts of many tests need: to wait, to expect, ports, processes, an API server's client, its watches."""
