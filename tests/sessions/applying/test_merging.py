"""A merged file keeps every byte around the definitions that the kernel changes."""

from __future__ import annotations

import codecs
import re

import pytest

from sessions.applying.placing import merge_files, read_home
from sessions.errors import NotApplicable

OLD = "def entry(x):\n    return _helper(x)\n"
NEW = "def entry(x):\n    return x  # new\n"
LIBRARY = f'''\
"""Ops."""
import os

TABLE = {{
  "a": 1,   "b" : 2 }}


def old(x):
    return x


{OLD}

def last(x): return  x
'''


def merged(data: bytes, kernel: str, *, elsewhere: str = "") -> bytes:
    """Return the file's new bytes; `elsewhere` is the text of the other files of the repository."""
    home = read_home("ops.py", data)
    texts = merge_files(
        [home],
        kernel,
        ["entry"],
        is_used_elsewhere=lambda name: re.search(rf"\b{name}\b", elsewhere) is not None,
    )
    return home.encoded(texts["ops.py"])


def file(text: str, encoding: str = "utf-8", end: str = "\n", bom: bytes = b"") -> bytes:
    return bom + text.replace("\n", end).encode(encoding)


CODINGS = {
    "utf-8": file(f"# Ünïcode\u2028 line\n{OLD}x = 'é\u2028ß'\n"),
    "bom": file(f"import os\n{OLD}# é\n", bom=codecs.BOM_UTF8),
    "bom and coding line": file(f"# coding: utf-8\n{OLD}", bom=codecs.BOM_UTF8),
    "latin-1": file(f"# -*- coding: latin-1 -*-\nNAME = 'Jos\xe9'\n{OLD}# \xa7\n", "latin-1"),
    "latin-1 in line two": file(f"#!/usr/bin/python\n# coding=latin-1\n# \xe9\n{OLD}", "latin-1"),
    "cp1252": file(f"# vim: set fileencoding=cp1252 :\n{OLD}PRICE = '5 €'\n", "cp1252"),
    "shift_jis": file(f"# coding: shift_jis\n# 日本語\n{OLD}# 表\n", "shift_jis"),
    "euc-kr": file(f"# coding: euc-kr\n# 한국어\n{OLD}", "euc-kr"),
    "gbk": file(f"# coding: gbk\n# 中文\n{OLD}", "gbk"),
    "koi8-r": file(f"# coding: koi8-r\n# привет\n{OLD}", "koi8-r"),
}
ENDS = {
    "crlf": file(LIBRARY, end="\r\n"),
    "old mac": file(LIBRARY, end="\r"),
    "old mac, latin-1 in line two": file(f"# \n# coding: latin-1\n# \xe9\n{OLD}", "latin-1", "\r"),
    "mixed": b"import os\r\n\nA = 1\r\nB = 2\n" + file(OLD) + b"C = 3\r\nD = 4\rE = 5\n",
    "crlf around lf": b"A = 1\r\n\r\n" + file(OLD) + b"\r\nB = 2\r\n",
    "no end": file(f"A = 1\n{OLD}B = 2").rstrip(),
    "no end after the function": file(f"A = 1\n\n\n{OLD}").rstrip(),
    "no end, crlf": file(f"A = 1\n\n\n{OLD}", end="\r\n").rstrip(),
    "empty lines at both ends": file(f"\n\n\n{OLD}\n\n\n\n"),
    "spaces at line ends": file(f"A = 1   \n   \n\t\n{OLD}   \n\nB = 2\t\n"),
    "form feeds": file(f"A = 1\n\x0c\n{OLD}\x0c\nB = 2\n"),
    "form feed right above": file(f"A = 1\n\x0c{OLD}\x0cB = 2\n"),
    "tabs": file(f"if True:\n\tA = 1\n{OLD}def f():\n\treturn 1\n"),
    "separators that are no line ends": file(f"A = '\x0b\x1c\x1d\x85\u2029'\n{OLD}B = '\x1e'\n"),
    "many empty lines": file(f"A = 1\n\n\n\n\n\n{OLD}\n\n\n\n\nB = 2\n"),
    "no empty lines": file(f"A = 1\n{OLD}B = 2\n"),
}
LISTS = {
    "list": '__all__ = ["entry", "_helper"]\n',
    "tuple": '__all__ = ("entry", "_helper",)\n',
    "plus": '__all__ = ["entry"]\n__all__ += ["_helper"]\n',
    "extend": '__all__ = ["entry"]\n__all__.extend(["_helper"])\n',
    "annotated": '__all__: list[str] = ["_helper"]\n',
    "globals": 'def call(x):\n    return globals()["_helper"](x)\n',
    "made at run time": 'def call(name, x):\n    return globals()[f"_{name}"](x)\n',
    "getattr of the module": "def call(name, x):\n    return getattr(sys.modules[__name__], name)(x)\n",
    "registry": 'REGISTRY = {"fast": "_helper"}\n',
    "annotation": 'def call(x: "list[_helper]"):\n    return x\n',
    "docstring": 'def call(x):\n    """As `_helper`."""\n    return x\n',
    "comment": "# See _helper.\n\nX = 1\n",
    "condition": "if X:\n    call = _helper\n",
    "except": "try:\n    call = _helper\nexcept NameError:\n    call = None\n",
    "decorator": "@_helper\ndef call(x):\n    return x\n",
    "default": "def call(x=_helper):\n    return x\n",
    "nested": "class Call:\n    def call(self):\n        return _helper(self)\n",
    "global": "def call():\n    global _helper\n",
    "lambda": "call = lambda x: _helper(x)\n",
    "f-string": 'def call(x):\n    return f"{_helper(x)}"\n',
}
SHAPES = {
    "docstring alone": f'"""Ops."""\n{OLD}',
    "docstring of one line": f'"""Ops."""; import os\n{OLD}',
    "comments at the top": f"#!/usr/bin/env python\n# Copyright\n# of a person\n{OLD}",
    "future": f"from __future__ import annotations\n{OLD}",
    "star import": f"from os.path import *\n{OLD}def last(x):\n    return join(x)\n",
    "condition": f"if True:\n    import os\nelse:\n    os = None\n{OLD}",
    "optional import": f"try:\n    import triton\nexcept ImportError:\n    triton = None\n{OLD}",
    "nested definition": f"if True:\n    def other(x):\n        return x\n{OLD}",
    "continuation": f"TOTAL = 1 + \\\n    2\n{OLD}assert TOTAL == \\\n  3\n",
    "semicolons": f"A = 1; B = 2\n{OLD}C = 3; D = 4;\n",
    "strings with hashes": f"A = '''\n# no comment\n'''\n{OLD}B = '''\n\n\n# none'''\n",
    "class and async": f"class  C :\n  x=1\nasync def f( ): pass\n{OLD}",
    "overloads": "from typing import overload\n@overload\ndef entry(x: int): ...\n@overload\ndef entry(x: str): ...\n"
    + OLD,
    "main block": f"{OLD}if __name__ == '__main__':\n    entry(1)\n",
    "comment behind": f"{OLD}    # the end\n\n# more\n",
}
CASES = {
    **{f"coding: {name}": data for name, data in CODINGS.items()},
    **{f"line ends: {name}": data for name, data in ENDS.items()},
    **{
        f"helper in: {name}": f"def _helper(x):\n    return x\n\n\n{OLD}\n\n{text}".encode()
        for name, text in LISTS.items()
    },
    **{f"shape: {name}": text.encode() for name, text in SHAPES.items()},
}


@pytest.mark.parametrize("data", CASES.values(), ids=CASES)
def test_every_byte_around_the_changed_function_stays(data: bytes) -> None:
    old = re.compile(re.escape(OLD.rstrip().encode()).replace(b"\\\n", b"(?:\r\n|\r|\n)"))
    before, after = old.split(data)
    lines = [line.encode() for line in NEW.splitlines()]
    assert merged(data, NEW) in [before + ending.join(lines) + after for ending in (b"\n", b"\r\n", b"\r")]


@pytest.mark.parametrize(
    ("text", "kernel", "says"),
    [
        (f"A = 1; {OLD}", NEW, "no Python"),
        (
            f"A = 1; C = 1\n{OLD}",
            f"A = 2\n{NEW.replace('x  #', 'x, A  #')}",
            "several statements on one line",
        ),
        (
            f"if C:\n    def k(x): pass\n{OLD}",
            f"def k(x): return 2\n{NEW.replace('x  #', 'k(x)  #')}",
            "line 1 of the file uses `k`",
        ),
        (f"if C:\n    {OLD.replace(chr(10), chr(10) + '    ')}", NEW, "defines no `entry` at its top level"),
        (f"{OLD}entry = register(entry)\n", NEW, "line"),
        (f"@register\n{OLD}", NEW, "lacks the decorator `@register`"),
        (
            f"def f(x):\n    return max(x)\n{OLD}",
            f"def max(x):\n    return x\n{NEW.replace('x  #', 'max(x)  #')}",
            "line 1 of the file uses `max`",
        ),
        (
            f"from a import *\n{OLD}def f(x):\n    return g(x)\n",
            f"def g(x):\n    return x\n{NEW.replace('x  #', 'g(x)  #')}",
            "uses `g`",
        ),
        (
            f"from a import g\n{OLD}",
            f"from b import g\n{NEW.replace('x  #', 'g(x)  #')}",
            "`g` is another import",
        ),
        (OLD, f"from b import *\n{NEW}", r"`\*` is another import"),
        (f"{OLD}SIZES = 4\n", f"SIZES = 4\nR = f(SIZES)\n{NEW}", "needs `SIZES` above its place"),
        (
            f"def k(x): return 1\n{OLD}def f(x):\n    return globals()['k'](x)\n",
            f"def k(x): return 2\n{NEW.replace('x  #', 'k(x)  #')}",
            "uses `k`",
        ),
    ],
)
def test_kernel_that_would_change_more_than_its_function_is_refused(
    text: str, kernel: str, says: str
) -> None:
    with pytest.raises(NotApplicable, match=says):
        merged(text.encode(), kernel)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"# caf\xe9\ndef entry(x): pass\n", "ops.py cannot be read as Python: "),
        (b"A = 1\n" * 9 + b"# caf\xe9\n", "ops.py cannot be read as Python: "),
        (b"# coding: klingon\n", "ops.py cannot be read as Python: unknown encoding"),
        (b"# coding: rot13\n", "ops.py cannot be read as Python: "),
        (
            b"# coding: utf-7\nA = '+AGE-'\n",
            "ops.py cannot be read as Python: utf-7 does not give the same bytes",
        ),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", "ops.py cannot be read as Python: "),
        (b"A = 1\0\n", "ops.py is no Python"),
        (b"", "the file defines no `entry`"),
        (b"A = " + b"-" * 20_000 + b"1\n", "ops.py is no Python"),
        (
            b"# coding: latin-1\n" + OLD.encode(),
            "ops.py is in iso-8859-1, which has no '\u03bc' of the kernel",
        ),
    ],
)
def test_file_that_cannot_be_kept_is_refused_with_a_sentence(data: bytes, says: str) -> None:
    with pytest.raises(NotApplicable, match=says):
        merged(data, NEW.replace("new", "\u03bc"))


CONDITION = "try:\n    import triton\nexcept ImportError:\n    triton = None\n\nif triton:\n\n    @triton.jit\n    def k(x):\n        {}\n"
WRITTEN = {
    "definitions at their places, new ones above the next changed one": (
        "import torch\n\n\ndef k(x):\n    return 1\n\n\ndef other(x):\n    return  x\n\n\n# Runs k.\ndef entry(x):\n    return k(x)\n",
        (
            "import torch\nimport math\n\n\nN = 1\nM = 2\n\n\ndef k(x):\n    return 2\n\n\ndef other(x):\n    return x\n\n\ndef new(x):\n"
            "    return math.pi\n\n\ndef entry(x):\n    return k(x) + new(x) + N + M\n"
        ),
        (
            "import torch\nimport math\n\n\nN = 1\nM = 2\n\n\ndef k(x):\n    return 2\n\n\ndef other(x):\n    return  x\n\n\ndef new(x):\n"
            "    return math.pi\n\n\n# Runs k.\ndef entry(x):\n    return k(x) + new(x) + N + M\n"
        ),
    ),
    "helpers without another name are removed with their comments": (
        f"A = 1\n\n\n# Helps.\ndef _helper(x):\n    return _second(x)\n\n\ndef _second(x):\n    return x\n\n\n{OLD}B = 2\n",
        NEW,
        f"A = 1\n\n\n{NEW}B = 2\n",
    ),
    "`__all__`, `__main__` and unchanged blocks are the file's": (
        f"__all__ = ['entry', 'f']\n{OLD}if __name__ == '__main__':\n    entry(1)\n",
        f"__all__ = ['entry']\n{NEW}if __name__ == '__main__':\n    entry(2)\n",
        f"__all__ = ['entry', 'f']\n{NEW}if __name__ == '__main__':\n    entry(1)\n",
    ),
    "overloads and functions that read `__all__` stay": (
        f"from typing import overload\n@overload\ndef f(x: int): ...\ndef f(x):\n    return x\ndef g():\n    return __all__\n{OLD}",
        f"from typing import overload\n@overload\ndef f(x: int): ...\ndef f(x):\n    return x\ndef g():\n    return __all__\n{NEW}",
        f"from typing import overload\n@overload\ndef f(x: int): ...\ndef f(x):\n    return x\ndef g():\n    return __all__\n{NEW}",
    ),
    "variables of comprehensions and of functions are no definitions": (
        f"A = [i for i in (1, 2)]\nB = [i for i in (3,)]\nif A:\n    def f():\n        i = 1\n{OLD}",
        f"B = [i for i in (4,)]\nif B:\n    def g():\n        i = 1\n{NEW.replace('x  #', 'g(B)  #')}",
        (
            f"A = [i for i in (1, 2)]\nB = [i for i in (4,)]\nif A:\n    def f():\n        i = 1\nif B:\n    def g():\n        i = 1\n"
            f"{NEW.replace('x  #', 'g(B)  #')}"
        ),
    ),
    "a kernel under a condition stays under it": (
        f"{CONDITION.format('return 1')}\n\n{OLD.replace('_helper', 'k')}",
        f"{CONDITION.format('return 2')}\n\n{OLD.replace('_helper', 'k')}",
        f"{CONDITION.format('return 2')}\n\n{OLD.replace('_helper', 'k')}",
    ),
    "an import that may fail is not asked for again": (
        f"{CONDITION.format('return 1')}\n\n{OLD}",
        f"import triton\n{NEW.replace('x  #', 'triton  #')}",
        f"{CONDITION.format('return 1')}\n\n{NEW.replace('x  #', 'triton  #')}",
    ),
    "imports of a file without imports": (
        f'"""Ops."""\n\n\n{OLD}',
        f"import os\nfrom a import b, c\n{NEW.replace('x  #', 'os, b, c  #')}",
        f'"""Ops."""\n\nimport os\nfrom a import b, c\n\n\n{NEW.replace("x  #", "os, b, c  #")}',
    ),
    "a name that an import lacks": (
        f"from a import (  # a\n    b,\n)\n\n\n{OLD}",
        f"from a import b, c\n{NEW.replace('x  #', 'b, c  #')}",
        f"from a import (  # a\n    b,\n)\nfrom a import c\n\n\n{NEW.replace('x  #', 'b, c  #')}",
    ),
    "an import for types alone does not count": (
        f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n\n\n{OLD}",
        f"import torch\n{NEW.replace('x  #', 'torch  #')}",
        f"from typing import TYPE_CHECKING\nimport torch\nif TYPE_CHECKING:\n    import torch\n\n\n{NEW.replace('x  #', 'torch  #')}",
    ),
}


@pytest.mark.parametrize(("text", "kernel", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_change_is_as_small_as_a_person_would_make_it(text: str, kernel: str, expected: str) -> None:
    assert merged(text.encode(), kernel).decode() == expected
    ends = merged(text.replace("\n", "\r\n").encode(), kernel).decode()
    assert ends == expected.replace("\n", "\r\n")
