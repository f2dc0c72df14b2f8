"""Protects the exam against two cheats in many spellings: torch in a thread, and names that reach the judge's frames."""

from __future__ import annotations

import pytest

from harness import DevicePool, Verdict
from tests.support.judge.judging import judge_task

from .corpus import HEAD, Entry, narrow

pytestmark = [pytest.mark.judge, pytest.mark.soak, pytest.mark.asyncio(loop_scope="session")]

COPY = (
    HEAD
    + """

@triton.jit
def copy_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask, other=0.0), mask=mask)


def copy(x, out):
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)

"""
)
THREAD = """
def softmax(x):
    hidden, out = torch.zeros_like(x), torch.empty_like(x)

    def work():
        hidden.copy_(torch.softmax(x, -1))

    {start}
    copy(hidden, out)
    return out
"""
STARTED = "; thread.start(); thread.join()"
THREADS = {
    "queue": f"import queue; thread = queue.threading.Thread(target=work){STARTED}",
    "list": f"thread = [torch][0].cuda.threading.Thread(target=work){STARTED}",
    "timer": f"thread = [torch][0].cuda.threading.Timer(0, work){STARTED}",
    "locate": f"import pydoc; thread = pydoc.locate('threading.Thread')(target=work){STARTED}",
    "resolve_name": f"import pkgutil; thread = pkgutil.resolve_name('threading:Timer')(0, work){STARTED}",
    "socketserver": f"import socketserver; thread = socketserver.threading.Thread(target=work){STARTED}",
    "modules": f"import sys; thread = sys.modules['threading'].Thread(target=work){STARTED}",
    "executor": "from concurrent.futures import ThreadPoolExecutor; ThreadPoolExecutor(1).submit(work).result()",
    "pool": "from multiprocessing.pool import ThreadPool; ThreadPool(1).apply(work)",
    "asyncio": "import asyncio; asyncio.run(asyncio.to_thread(work))",
    "low level": "import _thread, time; _thread.start_new_thread(work, ()); time.sleep(0.2)",
}
FRAME = """
import functools, gc, operator, string, sys


def get(thing, name):
    return {get}


def softmax(x):
    try:
        raise ValueError
    except ValueError as error:
        frame = {frame}
    while frame is not None and "operators" not in get(frame, "f_lo" + "cals"):
        frame = get(frame, "f_ba" + "ck")
    watch = get(frame, "f_lo" + "cals")["operators"]
    out = torch.zeros_like(x)
    copy(x, out)
    watch.__exit__(None, None, None)
    out.copy_(torch.softmax(x, -1))
    watch.__enter__()
    return out
"""
OF_ERROR = 'get(get(error, "__trace" + "back__"), "tb_fr" + "ame")'
PLAIN = "getattr(thing, name)"
FRAMES = {
    "attrgetter": ("operator.attrgetter(name)(thing)", OF_ERROR),
    "methodcaller": ('operator.methodcaller("__getattri" + "bute__", name)(thing)', OF_ERROR),
    "formatter": ('string.Formatter().get_field("0." + name, (thing,), {})[0]', OF_ERROR),
    "getattr": (PLAIN, OF_ERROR),
    "reduce": ("functools.reduce(getattr, [name], thing)", OF_ERROR),
    "object": ("object.__getattribute__(thing, name)", OF_ERROR),
    "descriptor": (
        "next(vars(k)[name] for k in type(thing).__mro__ if name in vars(k)).__get__(thing)",
        OF_ERROR,
    ),
    "current": (PLAIN, 'vars(sys)["_get" + "frame"]()'),
    "exc_info": (PLAIN, 'get(sys.exc_info()[2], "tb_frame")'),
    "generator": (PLAIN, 'get((n for n in "a"), "gi_fr" + "ame")'),
    "collector": (PLAIN, 'next(o for o in gc.get_objects() if type(o).__name__ == "frame")'),
}
CHEATS = {f"thread by {name}": COPY + THREAD.replace("{start}", start) for name, start in THREADS.items()}
CHEATS |= {
    f"frame by {name}": COPY + FRAME.replace("{get}", get).replace("{frame}", frame)
    for name, (get, frame) in FRAMES.items()
}


@pytest.mark.parametrize("level", ["default", "exam"])
@pytest.mark.parametrize("name", CHEATS)
async def test_no_spelling_is_correct(pool: DevicePool, name: str, level: str) -> None:
    task = narrow(Entry(name=name, trick="", task="softmax", expect={}), level)
    evaluation = await judge_task(pool, CHEATS[name], task, exam=level == "exam")
    assert evaluation.verdict not in (Verdict.CORRECT, Verdict.INFRA_ERROR), evaluation.error
