"""How bytes go between two processes: frames over a socket, their encoding, and the file of a guest's stack. No torch."""
