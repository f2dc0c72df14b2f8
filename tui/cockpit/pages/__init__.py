"""The tabs of the Agent screen, each as lines of a given width."""
