"""Judges on the nodes of a Ray cluster, from one engine.

An actor of each GPU, or of the cores of a node without GPU, holds an ordinary `DevicePool`: `node_judge`. The engine holds a
`ClusterPool`, which hands candidates to the actors and judges again elsewhere what a dead node held. Only `ray_cluster` imports
Ray.
"""
