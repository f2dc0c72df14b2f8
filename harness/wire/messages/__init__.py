"""What two processes say to each other: a module for each worker, named after it, and `requests`, the form of them all.

`script` and `program` are both of the script worker, which runs a benchmark's test or a program. No torch.
"""
