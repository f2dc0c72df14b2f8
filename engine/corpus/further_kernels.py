"""Reads the kernels that a person gives as examples: a folder of Python files, or a JSON array as in TritonBench."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from engine.corpus.overlap import WORD, function_names, kernel_bodies
from engine.errors import UsageProblem
from engine.reply.module_text import parse_module

MOST_BYTES = 32_768
"""Largest module; a larger example would leave too little of a prompt for the task."""


class Unfit(NamedTuple):
    """Why a module cannot be an example."""

    why: str


class CorpusKernel(NamedTuple):
    """A module with a kernel, and what its syntax tree says. The tree takes too much memory to keep it."""

    source: str
    title: str
    """First line of the docstring; empty without one."""
    functions: frozenset[str]
    words: tuple[str, ...]
    """Words of the description, the docstring and the names of functions."""


class Entry(msgspec.Struct, frozen=True):
    """An object of a JSON array. `train_crawl.json` has the first two keys, `train_synth.json` the others."""

    code: str = ""
    description_1: str = ""
    output: str = ""
    instruction: str = ""


ENTRIES = msgspec.json.Decoder(tuple[Entry, ...])


def check_corpus(path: Path) -> None:
    """Raise `UsageProblem` if kernels cannot be read from it."""
    if not path.is_dir():
        read_entries(path)


def further_kernels(path: Path) -> Iterator[tuple[str, CorpusKernel | Unfit]]:
    """Yield each kernel with its name, in a fixed order: its path in the folder, or its number in the file.

    Raises `UsageProblem` if `path` is neither a folder nor a JSON array.
    """
    if path.is_dir():
        for file in sorted(file for file in path.rglob("*.py") if file.is_file()):
            yield str(file.relative_to(path)), read_module(file)
        return
    for number, entry in enumerate(read_entries(path), start=1):
        yield (
            f"{path.name}#{number}",
            kernel_of(entry.code or entry.output, entry.description_1 or entry.instruction),
        )


def read_entries(file: Path) -> tuple[Entry, ...]:
    """Returns the objects of a JSON array. Raises `UsageProblem` if the file has none."""
    try:
        return ENTRIES.decode(file.read_bytes())
    except OSError as error:
        why = error.strerror
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = str(error)
    raise UsageProblem(
        f"--corpus {file} cannot be read ({why}); name a folder with Triton kernels (*.py), or a JSON array of objects"
        " with `code` or `output`"
    )


def read_module(file: Path) -> CorpusKernel | Unfit:
    """Returns the kernel in a Python file, or why it cannot be an example."""
    try:
        return kernel_of(file.read_bytes().decode("utf-8"))
    except OSError as error:
        return Unfit(f"it cannot be read ({error.strerror})")
    except UnicodeDecodeError:
        return Unfit("it is not UTF-8 text")


def kernel_of(source: str, description: str = "") -> CorpusKernel | Unfit:
    """Returns what a module says, or why it cannot be an example. Parses it once."""
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > MOST_BYTES:
        return Unfit(f"it has {size} bytes, more than the {MOST_BYTES} that fit a prompt")
    tree = parse_module(source)
    if tree is None:
        return Unfit("Python cannot parse it")
    if next(kernel_bodies(tree), None) is None:
        return Unfit("it has no function with @triton.jit")
    docstring = ast.get_docstring(tree) or ""
    functions = function_names(tree)
    words = f"{description} {docstring} {' '.join(sorted(functions))}".lower().replace("_", " ")
    return CorpusKernel(
        source, docstring.partition("\n")[0].rstrip(". "), functions, tuple(WORD.findall(words))
    )
