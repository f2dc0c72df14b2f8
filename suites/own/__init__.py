"""Makes a task of a kernel that no task names yet. Reads text only: nothing here imports the kernel.

entry.py        finds the function that launches a kernel, and its PyTorch reference
joining.py      adds the kernels that a function launches from other modules
annotations.py  reads the shape and dtype of a parameter from its annotation
shapes.py       parses `--shapes`: the inputs, their sizes and dtypes
captured.py     the inputs of recorded calls
sizes.py        names the sizes, and shrinks them for the interpreter
evidence.py     what a first call of kernel and reference showed
texts.py        writes the files of the task
folder.py       the folders of such tasks in a person's home
"""
