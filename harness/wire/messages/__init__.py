"""Messages between two processes. Each module has the messages of one worker; `requests` has the form of all requests.

The script worker has two modules: `script` for a benchmark's test, `program` for a program. Nothing here imports torch.
"""
