"""Small programs that behave the same with and without `wavedeck capture`: what they print, and their exit codes."""

from __future__ import annotations

from typing import NamedTuple

ADD = "def add(x, y=1):\n    return x + y\n"
OPS = "class Ops:\n    def add(self, x, y=1):\n        return x + y\n"
SCALE = (
    "class Scale:\n    '''Scales.'''\n    def __init__(self, factor=2):\n        self.factor = factor\n"
    "    def __call__(self, x):\n        return self.factor * x\n"
)


class Program(NamedTuple):
    """A program of two files. `calls` is how many calls a capture records; `None` if it refuses the target."""

    target: str
    calls: int | None
    ops: str
    bench: str


PROGRAMS = {
    # Functions
    "function": Program("ops:add", 3, ADD, "import ops\nprint(ops.add(1), ops.add(1, 2), ops.add(y=3, x=1))"),
    "from_import": Program("ops:add", 1, ADD, "from ops import add\nprint(add(1))"),
    "names_of_a_function": Program("ops:add", 0, ADD + "    '''Adds.'''\n", """
import ops, types
f = ops.add
print(f.__name__, f.__qualname__, f.__module__, f.__doc__, f.__defaults__, f.__kwdefaults__, f.__annotations__, f.__closure__)
print(isinstance(f, types.FunctionType), callable(f), type(f).__name__, type(f), repr(f).split(" at ")[0], vars(f), hasattr(f, "__wrapped__"))
print(f.__code__.co_varnames, f.__globals__ is vars(ops), f.__builtins__ is not None, sorted(dir(f)))
"""),
    "signature_of_a_function": Program("ops:add", 1, "def add(x: int, /, y: 'str' = 1, *more, z=3, **rest) -> int:\n    return x", """
import inspect, ops, typing
print(inspect.signature(ops.add), inspect.getfullargspec(ops.add), inspect.getsource(ops.add), typing.get_type_hints(ops.add))
print(inspect.isfunction(ops.add), inspect.isroutine(ops.add), inspect.ismethod(ops.add), inspect.iscoroutinefunction(ops.add))
print(ops.add(1, 2, 3, z=4, w=5), inspect.getmodule(ops.add).__name__, inspect.unwrap(ops.add) is ops.add)
"""),
    "attributes_of_a_function": Program("ops:add", 1, "def add(x):\n    add.calls += 1\n    return add.calls\nadd.calls = 10\nsame = add\n", """
import ops
ops.add.calls = 20
print(ops.add(1), ops.same.calls, vars(ops.same))
del ops.add.calls
print(hasattr(ops.same, "calls"))
"""),
    "defaults_change_at_run_time": Program("ops:add", 3, ADD, """
import ops
print(ops.add(1))
ops.add.__defaults__ = (5,)
print(ops.add(1))
ops.add.__code__ = (lambda x, y: x * y).__code__
print(ops.add(3))
"""),
    "alias_made_before": Program("ops:add", 1, ADD + "table = {add: 'found'}\nnames = [add]\n", """
import ops
print(ops.table[ops.add], ops.add in ops.names, ops.names[0] == ops.add, ops.add == ops.names[0], ops.add != ops.names[0], ops.names.index(ops.add))
print(ops.add == 3, ops.add is ops.add, len({ops.add, ops.names[0]}), ops.add(1))
"""),
    "pickle_of_a_function": Program("ops:add", 2, ADD, """
import copy, ops, pickle
for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
    text = pickle.dumps([ops.add, ops.add], protocol)
    print(text, pickle.loads(text)[1] is ops.add)
print(pickle._loads(pickle._dumps(ops.add)) is ops.add)
print(copy.copy(ops.add) is ops.add, copy.deepcopy({"f": ops.add})["f"] is ops.add, pickle.loads(text)[0](1), copy.deepcopy(ops.add)(2))
"""),
    "functools_over_a_function": Program("ops:add", 4, ADD, """
import functools, ops
@functools.wraps(ops.add)
def outer(*args):
    return ops.add(*args) + 100
print(outer(1), outer.__name__, outer.__wrapped__ is ops.add, functools.partial(ops.add, 1)(2), functools.reduce(ops.add, [1, 2]), functools.lru_cache(ops.add)(1))
"""),
    "decorated_function": Program("ops:add", 2, """
import functools
def double(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return 2 * function(*args, **kwargs)
    return inner
@double
def add(x, y=1):
    return x + y
""", "import inspect, ops\nprint(ops.add(1), ops.add.__wrapped__(1), inspect.signature(ops.add), inspect.unwrap(ops.add) is ops.add.__wrapped__, ops.add(y=2, x=1))"),
    "lru_cache": Program("ops:fib", 12, "import functools\n@functools.lru_cache(maxsize=None)\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n", """
import copy, inspect, ops, pickle
print(ops.fib(6), ops.fib.cache_info(), ops.fib.cache_parameters(), ops.fib.__wrapped__(1), inspect.signature(ops.fib))
ops.fib.cache_clear()
print(ops.fib.cache_info(), pickle.loads(pickle.dumps(ops.fib)) is ops.fib, copy.deepcopy(ops.fib) is ops.fib, type(ops.fib), ops.fib(1))
"""),
    "singledispatch": Program("ops:show", 3, "import functools\n@functools.singledispatch\ndef show(x):\n    return 'object'\n@show.register(int)\ndef _(x):\n    return 'int'\n", """
import ops
@ops.show.register
def _(x: str):
    return "str"
print(ops.show(1), ops.show("a"), ops.show(1.0), ops.show.dispatch(int)(1), sorted(kind.__name__ for kind in ops.show.registry))
"""),
    "function_becomes_a_method": Program("ops:add", 2, "def add(self, x=1):\n    return type(self).__name__, x\n", """
import ops, types
class Later:
    add = ops.add
later = Later()
print(later.add(2), types.MethodType(ops.add, later)(3), later.add.__self__ is later, later.add == later.add, Later.add is ops.add)
"""),
    "function_is_replaced": Program("ops:add", 1, ADD, """
import ops, unittest.mock
plain = ops.add
with unittest.mock.patch("ops.add", lambda x: "patched"):
    print(ops.add(1))
print(ops.add is plain, ops.add(1))
with unittest.mock.patch("ops.add", autospec=True) as mocked:
    ops.add(1)
    print(mocked.call_args)
ops.add = lambda x: "other"
print(ops.add(1))
"""),
    "module_is_reloaded": Program("ops:add", 2, ADD, "import importlib, ops\nprint(ops.add(1))\nold = ops.add\nops = importlib.reload(ops)\nprint(ops.add(2), ops.add is old, old == ops.add, ops.__loader__.__class__.__name__, ops.__spec__.loader is ops.__loader__)"),
    "weak_references": Program("ops:add", 1, ADD, "import gc, ops, weakref\nlink = weakref.ref(ops.add)\ngc.collect()\nprint(link() is ops.add, weakref.WeakKeyDictionary({ops.add: 1})[ops.add], link()(1))"),
    "callback": Program("ops:add", 8, ADD, "import ops\nprint(list(map(ops.add, [1, 2])), sorted([3, 1], key=ops.add), max([1, 2], key=ops.add), list(filter(ops.add, [0, -1])))"),
    "imported_in_a_circle": Program("ops:add", 2, "import user\n" + ADD, "import ops, user\nprint(ops.add(1), user.late())"),
    # Classes
    "method": Program("ops:Ops.add", 3, OPS, """
import inspect, ops, pickle, types
thing = ops.Ops()
print(thing.add(1), ops.Ops.add(thing, 1, y=2), thing.add.__name__, inspect.signature(thing.add), inspect.signature(ops.Ops.add), inspect.ismethod(thing.add))
print(type(thing.add) is types.MethodType, thing.add == thing.add, hash(thing.add) == hash(thing.add), thing.add.__self__ is thing, thing.add.__func__ is ops.Ops.add)
print(pickle.loads(pickle.dumps(thing.add))(5), repr(thing.add).split(" of ")[0], repr(ops.Ops.add).split(" at ")[0], ops.Ops.add is ops.Ops.add)
"""),
    "inherited_method": Program("ops:Child.add", 2, OPS + "class Child(Ops):\n    pass\nclass Grand(Child):\n    def add(self, x, y=1):\n        return super().add(x, y) * 10\n", """
import ops
print(ops.Child().add(1), ops.Grand().add(1), ops.Ops().add(1), ops.Child.add == ops.Ops.add, issubclass(ops.Child, ops.Ops))
"""),
    "class_method": Program("ops:Ops.make", 4, "class Ops:\n    @classmethod\n    def make(cls, x=1):\n        return cls.__name__, x\nclass Child(Ops):\n    pass\n", """
import inspect, ops, pickle
print(ops.Ops.make(), ops.Child.make(2), ops.Child().make(3), type(vars(ops.Ops)["make"]), inspect.signature(ops.Ops.make), ops.Ops.make == ops.Ops.make, pickle.loads(pickle.dumps(ops.Child.make))(4))
"""),
    "inherited_class_method": Program("ops:Child.make", 2, "class Ops:\n    @classmethod\n    def make(cls, x=1):\n        return cls.__name__, x\nclass Child(Ops):\n    pass\nclass Grand(Child):\n    pass\n", "import ops\nprint(ops.Child.make(), ops.Grand.make(2), ops.Ops.make(3))"),
    "static_method": Program("ops:Ops.twice", 3, "class Ops:\n    @staticmethod\n    def twice(x):\n        return 2 * x\n", """
import inspect, ops, pickle
print(ops.Ops.twice(2), ops.Ops().twice(3), type(vars(ops.Ops)["twice"]), inspect.signature(ops.Ops.twice), ops.Ops.twice is ops.Ops.twice, pickle.loads(pickle.dumps(ops.Ops.twice))(4), inspect.isfunction(ops.Ops.twice))
"""),
    "inherited_static_method": Program("ops:Child.twice", 2, "class Ops:\n    @staticmethod\n    def twice(x):\n        return 2 * x\nclass Child(Ops):\n    pass\n", "import ops\nprint(ops.Child.twice(2), ops.Child().twice(3))"),
    "partialmethod": Program("ops:Ops.more", None, "import functools\nclass Ops:\n    def add(self, x, y):\n        return type(self).__name__, x, y\n    more = functools.partialmethod(add, y=5)\n", "import inspect, ops\nprint(ops.Ops().more(1), ops.Ops.more(ops.Ops(), 2), inspect.signature(ops.Ops().more))"),
    "lru_cache_on_a_method": Program("ops:Ops.add", 4, "import functools\nclass Ops:\n    @functools.lru_cache(maxsize=8)\n    def add(self, x):\n        return type(self).__name__, x\n", """
import ops
thing = ops.Ops()
print(thing.add(1), thing.add(1), ops.Ops.add(thing, 1), ops.Ops.add.cache_info(), thing.add.cache_info(), thing.add.__self__ is thing, ops.Ops.add.__wrapped__(thing, 2))
thing.add.cache_clear()
print(thing.add(2), ops.Ops.add.cache_info())
"""),
    "property": Program("ops:Ops.size", None, "class Ops:\n    @property\n    def size(self):\n        return 3\n", "import ops\nprint(ops.Ops().size, type(ops.Ops.size))"),
    "descriptor": Program("ops:Ops.run", None, """
class Bound:
    def __init__(self, function):
        self.function = function
    def __get__(self, instance, owner):
        return self if instance is None else lambda *args: self.function(instance, *args)
    def __call__(self, *args):
        return "not bound"
class Ops:
    @Bound
    def run(self, x):
        return type(self).__name__, x
""", "import ops\nprint(ops.Ops().run(1), ops.Ops.run(2), type(ops.Ops.run).__name__)"),
    "special_method": Program("ops:Vector.__add__", 2, "class Vector:\n    def __init__(self, x):\n        self.x = x\n    def __add__(self, other):\n        return NotImplemented if isinstance(other, str) else Vector(self.x + other.x)\n", """
import ops
print((ops.Vector(1) + ops.Vector(2)).x)
try:
    ops.Vector(1) + "a"
except TypeError as error:
    print(error)
"""),
    "call_of_a_class": Program("ops:Scale.__call__", 2, SCALE, "import inspect, ops\nprint(ops.Scale()(2), ops.Scale(5)(2), inspect.signature(ops.Scale()), ops.Scale.__doc__)"),
    "constructor": Program("ops:Scale.__init__", 2, SCALE, "import inspect, ops\nprint(ops.Scale().factor, ops.Scale(factor=5).factor, inspect.signature(ops.Scale))"),
    "new": Program("ops:One.__new__", 2, "class One(int):\n    def __new__(cls, x=1):\n        return super().__new__(cls, x)\n", "import ops\nprint(ops.One(), ops.One(3) + 1, type(ops.One()) is ops.One and 1, type(vars(ops.One)['__new__']))".replace(", type(ops.One()) is ops.One and 1", "")),
    "super_and_slots": Program("ops:Slim.add", 2, "class Wide:\n    __slots__ = ()\n    def add(self, x):\n        return x\nclass Slim(Wide):\n    __slots__ = ('y',)\n    def add(self, x):\n        return super().add(x) + 1\n", "import ops\nprint(ops.Slim().add(1), hasattr(ops.Slim(), '__dict__'), ops.Slim().add(2))"),
    "abstract_and_protocol": Program("ops:Base.run", 1, """
import abc, typing
class Base(abc.ABC):
    @abc.abstractmethod
    def run(self, x):
        return x
class Real(Base):
    def run(self, x):
        return super().run(x) + 1
@typing.runtime_checkable
class Runs(typing.Protocol):
    def run(self, x): ...
""", """
import ops
print(ops.Real().run(1), isinstance(ops.Real(), ops.Runs), ops.Base.__abstractmethods__, ops.Base.run.__isabstractmethod__)
try:
    ops.Base()
except TypeError as error:
    print(error)
class Lazy(ops.Base):
    pass
print(Lazy.__abstractmethods__)
"""),
    "dataclass_and_enum": Program("ops:Kind.label", 2, "import enum\nclass Kind(enum.Enum):\n    A = 1\n    B = 2\n    def label(self):\n        return self.name.lower()\n", "import ops\nprint([kind.label() for kind in ops.Kind], list(ops.Kind), ops.Kind(1), ops.Kind.A.label.__self__)"),
    "method_of_an_instance": Program("ops:thing.add", 2, OPS + "thing = Ops()\n", "import copy, ops, pickle\nprint(ops.thing.add(1), copy.deepcopy(ops.thing).add(2), pickle.loads(pickle.dumps(ops.thing)).add(3), ops.Ops().add(4), ops.thing.add(5), ops.thing.add.__self__ is ops.thing)"),
    # Callable objects
    "attributes_of_an_object": Program("ops:scale", 2, SCALE + "scale = Scale()\nsame = scale\n", """
import ops
ops.scale.factor = 11
print(ops.scale(1), ops.same(1), ops.scale is ops.same, vars(ops.same), type(ops.scale) is ops.Scale, isinstance(ops.scale, ops.Scale), ops.Scale(3)(1))
del ops.scale.factor
print(hasattr(ops.same, "factor"), ops.scale.__doc__)
"""),
    "object_as_a_container": Program("ops:scale", 1, SCALE + """
    def __getitem__(self, key): return key
    def __setitem__(self, key, value): self.factor = value
    def __delitem__(self, key): del self.factor
    def __len__(self): return 3
    def __iter__(self): return iter([1, 2])
    def __contains__(self, item): return item == 7
    def __eq__(self, other): return isinstance(other, Scale) and self.factor == other.factor
    def __hash__(self): return 5
    def __bool__(self): return False
    def __enter__(self): return self
    def __exit__(self, *error): print("exit")
    def __add__(self, other): return "add"
    def __radd__(self, other): return "radd"
    def __lt__(self, other): return True
    def __int__(self): return 4
    def __index__(self): return 2
    def __repr__(self): return "<scale>"
scale = Scale()
""", """
import ops
s = ops.scale
s[0] = 6
print(s[3], s[1:2], len(s), list(s), 7 in s, s == ops.Scale(6), hash(s), bool(s), s + 1, 1 + s, s < 2, int(s), [0, 1, 2][s], s, f"{s}", s(2))
with s as inner:
    print(inner is s)
del s[0]
print(vars(s))
"""),
    "object_is_copied": Program("ops:scale", 1, SCALE + "scale = Scale()\nscale.me = scale\n", """
import copy, ops, pickle
again = pickle.loads(pickle.dumps(ops.scale))
deep = copy.deepcopy(ops.scale)
print(type(again) is ops.Scale, again.me is again, deep.me is deep, ops.scale.me is ops.scale, copy.copy(ops.scale).factor, again(3), ops.scale(4), deep(5))
"""),
    "two_objects_of_a_class": Program("ops:first", 2, SCALE + "first, second = Scale(1), Scale(2)\n", "import ops\nprint(ops.first(1), ops.second(1), ops.first(x=2), ops.Scale(7)(1))"),
    "object_with_inherited_call": Program("ops:scale", 1, SCALE + "class Child(Scale):\n    pass\nscale = Child()\n", "import ops\nprint(ops.scale(1), ops.Scale()(1), ops.Child()(3), ops.Child.__call__ == ops.Scale.__call__)"),
    "object_with_any_attribute": Program("ops:anything", 1, "class Any:\n    def __getattr__(self, name):\n        return self\n    def __call__(self, x):\n        return x\nanything = Any()\n", "import ops\nprint(ops.anything(1), ops.anything.fn.run is ops.anything)"),
    "mock": Program("ops:mock", 2, "import unittest.mock\nmock = unittest.mock.MagicMock(return_value=3)\n", "import ops\nprint(ops.mock(1), ops.mock(2, x=1), ops.mock.call_count, ops.mock.call_args_list, ops.mock.a.b(1) is not None)"),
    "partial": Program("ops:inc", 2, "import functools\ndef add(x, y):\n    return x + y\ninc = functools.partial(add, y=1)\n", "import copy, functools, inspect, ops, pickle\nprint(ops.inc(1), ops.inc.func is ops.add, ops.inc.args, ops.inc.keywords, isinstance(ops.inc, functools.partial), inspect.signature(ops.inc), pickle.loads(pickle.dumps(ops.inc))(1), functools.partial(ops.inc)(4), copy.copy(ops.inc)(5))"),
    "object_in_a_class": Program("ops:Ops.scale", 2, SCALE + "class Ops:\n    scale = Scale()\n", "import ops\nprint(ops.Ops.scale(1), ops.Ops().scale(2), ops.Ops.scale.factor)"),
    "class": Program("ops:Scale", None, SCALE, "import ops\nprint(ops.Scale(3)(1), ops.Scale.__name__)"),
    # Other kinds of function
    "coroutine": Program("ops:wait", None, "import asyncio\nasync def wait(x):\n    await asyncio.sleep(0)\n    return x\n", "import asyncio, inspect, ops\nprint(asyncio.run(ops.wait(3)), inspect.iscoroutinefunction(ops.wait))"),
    "coroutine_of_an_object": Program("ops:wait", None, "class Wait:\n    async def __call__(self, x):\n        return x\nwait = Wait()\n", "import asyncio, ops\nprint(asyncio.run(ops.wait(3)))"),
    "call_inside_a_coroutine": Program("ops:add", 6, ADD, "import asyncio, ops\nasync def work(n):\n    await asyncio.sleep(0)\n    return ops.add(n)\nasync def main():\n    return await asyncio.gather(*map(work, range(5)), asyncio.to_thread(ops.add, 9))\nprint(asyncio.run(main()))"),
    "generator": Program("ops:count", None, "def count(n):\n    yield from range(n)\n", "import inspect, ops\nprint(list(ops.count(3)), inspect.isgeneratorfunction(ops.count))"),
    "context_manager": Program("ops:inside", 2, "import contextlib\n@contextlib.contextmanager\ndef inside(x):\n    print('in', x)\n    try:\n        yield x\n    except ValueError:\n        print('caught')\n", "import ops\nwith ops.inside(1) as x:\n    print(x)\nwith ops.inside(2):\n    raise ValueError"),
    "function_in_c": Program("math:sqrt", 2, "", "import inspect, math, pickle\nprint(math.sqrt(4), list(map(math.sqrt, [9])), math.sqrt.__name__, math.sqrt.__self__, inspect.signature(math.sqrt), inspect.isbuiltin(math.sqrt), pickle.loads(pickle.dumps(math.sqrt)) is math.sqrt, math.sqrt, type(math.sqrt))"),
    "clock": Program("time:perf_counter", 3, "", "import time\na = time.perf_counter()\nprint(time.perf_counter() - a < 60, time.perf_counter() > 0, time.monotonic() > 0)"),
    "functions_that_the_hook_calls": Program("os:urandom", 1, "", "import os\nprint(len(os.urandom(3)))"),
    "json": Program("json:dumps", 2, "", "import json\nprint(json.dumps([1]), json.dumps({'a': 1}, indent=1))"),
    "builtin": Program("builtins:locals", None, "", "def f(x):\n    return locals()\nprint(f(1), len([1]), eval('3'))"),
    "caller_of_inspect": Program("inspect:currentframe", None, "", "import inspect\ndef f():\n    return inspect.currentframe().f_code.co_name\nprint(f())"),
    # Errors, exits, signals
    "error_is_printed": Program("ops:fail", 1, "def inner(x):\n    raise ValueError(f'no {x}')\ndef fail(x):\n    inner(x)\n", "import ops\ndef main():\n    ops.fail(3)\nmain()"),
    "chain_of_errors": Program("ops:fail", 2, "def fail(x):\n    try:\n        1 / x\n    except ZeroDivisionError as error:\n        raise KeyError('k') from error\n", "import ops, sys, traceback\ntry:\n    ops.fail(0)\nexcept KeyError as error:\n    print(traceback.format_exc(), error.__cause__, len(traceback.extract_tb(sys.exc_info()[2])))\ntry:\n    ops.fail(0)\nfinally:\n    print('finally')"),
    "error_that_is_frozen": Program("ops:fail", 1, "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass Odd(Exception):\n    code: int\ndef fail(x):\n    raise Odd(x)\n", "import ops\ntry:\n    ops.fail(3)\nexcept ops.Odd as error:\n    print(error.code, error.__traceback__ is not None)"),
    "stop_iteration": Program("ops:step", 3, "def step(it):\n    return next(it)\n", "import ops\nit = iter([1, 2])\nprint(ops.step(it), ops.step(it))\ntry:\n    ops.step(it)\nexcept StopIteration:\n    print('end')"),
    "error_at_import": Program("ops:add", None, "raise RuntimeError('broken')\n", "def main():\n    import ops\nmain()"),
    "missing_module": Program("ops.sub:add", None, ADD, "import ops.sub"),
    "wrong_arguments": Program("ops:add", 2, ADD, "import ops\nfor kwargs in ({}, {'z': 1}):\n    try:\n        ops.add(**kwargs)\n    except TypeError as error:\n        print(error)"),
    "exit_code": Program("ops:add", 1, ADD, "import ops, sys\nsys.exit(ops.add(6))"),
    "exit_inside": Program("ops:leave", 1, "import sys\ndef leave(x):\n    sys.exit(x)\n", "import ops\nops.leave('a message')"),
    "os_exit": Program("ops:add", 1, ADD, "import ops, os, sys\nprint(ops.add(1))\nsys.stdout.flush()\nos._exit(5)"),
    "killed": Program("ops:add", 1, ADD, "import ops, os, signal\nops.add(1)\nos.kill(os.getpid(), signal.SIGTERM)"),
    "at_exit": Program("ops:add", 2, ADD, "import atexit, ops\natexit.register(lambda: print('end', ops.add(2)))\nprint(ops.add(1))"),
    "warning_of_the_caller": Program("ops:old", 2, "import warnings\ndef old(x):\n    warnings.warn('old', DeprecationWarning, stacklevel=2)\n    warnings.warn('new')\n", "import ops, warnings\nwarnings.simplefilter('always')\nops.old(1)\nwith warnings.catch_warnings(record=True) as seen:\n    ops.old(2)\nprint([(w.filename.rpartition('/')[2], w.lineno) for w in seen])"),
    "log_of_the_caller": Program("ops:note", 1, "import logging\nlogging.basicConfig(format='%(filename)s %(lineno)d %(funcName)s %(message)s')\ndef note(x):\n    logging.warning('plain')\n    logging.warning('caller', stacklevel=2)\n", "import ops\ndef main():\n    ops.note(1)\nmain()"),
    "alarm_ends_a_loop": Program("ops:add", None, ADD, """
import ops, signal
def late(number, frame):
    raise TimeoutError("late")
signal.signal(signal.SIGALRM, late)
for _ in range(20):
    signal.setitimer(signal.ITIMER_REAL, 0.005)
    try:
        while True:
            ops.add(3)
    except TimeoutError as error:
        last = error
print(last)
"""),
    "alarm_of_a_lambda": Program("ops:add", None, ADD, """
import ops, signal
signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(RuntimeError("late")))
for _ in range(20):
    signal.setitimer(signal.ITIMER_REAL, 0.005)
    try:
        while True:
            ops.add(3)
    except RuntimeError as error:
        last = error
print(last)
"""),
    "interrupt": Program("ops:add", None, ADD, """
import ops, os, signal, threading
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        ops.add(3)
except KeyboardInterrupt:
    print("interrupted")
"""),
    "handler_calls_the_function": Program("ops:add", None, ADD, """
import ops, signal
signal.signal(signal.SIGALRM, lambda number, frame: seen.append(ops.add(1)))
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.002)
seen = []
while len(seen) < 20:
    ops.add(3)
signal.setitimer(signal.ITIMER_REAL, 0)
print(seen[:3])
""".replace("ops.add(3)", "ops.add(sum(range(9)))")),
    # Recursion
    "recursion": Program("ops:down", 601, "def down(n):\n    return n if not n else down(n - 1)\n", "import ops, sys\nprint(ops.down(600), sys.getrecursionlimit())"),
    "recursion_near_the_limit": Program("ops:down", None, "def down(n):\n    return n if not n else down(n - 1)\n", "import ops, sys\nprint(ops.down(970))\nsys.setrecursionlimit(3000)\nprint(ops.down(2900), sys.getrecursionlimit())"),
    "recursion_without_end": Program("ops:down", None, "def down(n):\n    return down(n + 1)\n", "import ops, sys\nfor _ in range(3):\n    try:\n        ops.down(0)\n    except RecursionError as error:\n        print(type(error).__name__)\nprint(sys.getrecursionlimit())"),
    "recursion_of_a_method": Program("ops:Node.depth", 701, "class Node:\n    def __init__(self, child):\n        self.child = child\n    def depth(self):\n        return 1 if self.child is None else 1 + self.child.depth()\n", "import ops, threading\nnode = None\nfor _ in range(701):\n    node = ops.Node(node)\nthread = threading.Thread(target=lambda: print(node.depth()))\nthread.start()\nthread.join()"),
    # Arguments
    "surrogates": Program("ops:show", 3, "def show(x, **more):\n    return ascii(x)\n", "import ops\nprint(ops.show('\\ud800'), ops.show('a\\udcff', **{'\\udc80': 1}), ops.show({'\\ud801': '\\udfff'}))"),
    "hostile_arguments": Program("ops:show", 6, "def show(x):\n    return type(x).__name__\n", """
import ops
class Meta(type):
    def __getattribute__(cls, name):
        raise RuntimeError("a hidden class")
class Hidden(metaclass=Meta): pass
def fail(*_):
    print("touched")
    raise RuntimeError("no")
Loud = type("Loud", (), {name: fail for name in ("__repr__", "__str__", "__len__", "__iter__", "__eq__", "__hash__", "__bool__", "__getattr__", "__format__")})
List = type("List", (list,), {name: fail for name in ("__len__", "__iter__", "__getitem__", "__eq__", "__repr__")})
Dict = type("Dict", (dict,), {name: fail for name in ("__len__", "__iter__", "items", "keys", "__repr__")})
Text = type("Text", (str,), {name: fail for name in ("__len__", "__eq__", "__hash__", "__repr__")})
class Liar:
    @property
    def __class__(self):
        print("class touched")
        return int
print(ops.show(Loud()), ops.show(List([1])), ops.show(Dict(a=1)), ops.show(Text("a")))
ops.show(Liar())
ops.show.__call__(3)
ops.Hidden = Hidden
"""),
    "class_that_hides": Program("ops:take", 1, "def take(x):\n    return 1\n", """
import ops
class Meta(type):
    def __getattribute__(cls, name):
        print("touched", name)
        raise RuntimeError("a hidden class")
class Hidden(metaclass=Meta): pass
print(ops.take(Hidden()))
"""),
    "nested_arguments": Program("ops:take", 4, "def take(x):\n    return len(x)\n", """
import ops
circle = []
circle.append(circle)
wide = [0] * 64
for _ in range(12):
    wide = [wide] * 64
deep = []
for _ in range(5000):
    deep = [deep]
print(ops.take(circle), ops.take(wide), ops.take(deep), ops.take({"a": circle}))
"""),
    "huge_arguments": Program("ops:take", 5, "def take(x):\n    return 1\n", "import ops\nprint(ops.take(10 ** 5000), ops.take('x' * 10 ** 7), ops.take(b'x' * 10 ** 7), ops.take(list(range(10 ** 6))), ops.take(float('nan')))"),
    "many_signatures": Program("ops:add", 2500, ADD, "import ops\nprint(sum(ops.add(n) for n in range(2500)))"),
    "arguments_are_released": Program("ops:take", 1, "def take(x):\n    return 1\n", "import gc, ops, weakref\nclass Big: pass\nbig = Big()\nlink = weakref.ref(big)\nops.take(big)\ndel big\nprint(link())"),
    "error_releases_its_arguments": Program("ops:fail", 1, "def fail(x):\n    raise ValueError\n", "import ops, weakref\nclass Big: pass\nbig = Big()\nlink = weakref.ref(big)\ntry:\n    ops.fail(big)\nexcept ValueError:\n    pass\ndel big\nprint(link())"),
    # Processes, files, environment
    "threads": Program("ops:add", 400, ADD, "import concurrent.futures, ops\nwith concurrent.futures.ThreadPoolExecutor(4) as pool:\n    print(sum(pool.map(ops.add, range(400))))"),
    "fork": Program("ops:add", 7, ADD, "import multiprocessing, ops\nwith multiprocessing.get_context('fork').Pool(2) as pool:\n    print(pool.map(ops.add, range(6), chunksize=3))\n    pool.close()\n    pool.join()\nprint(ops.add(1))"),
    "spawn": Program("ops:add", 3, ADD, "import multiprocessing, ops\nif __name__ == '__main__':\n    with multiprocessing.get_context('spawn').Pool(1) as pool:\n        print(pool.map(ops.add, [1, 2]))\n        pool.close()\n        pool.join()\n    print(ops.add(1))"),
    "fork_inside": Program("ops:work", 2, "import os\ndef work(x):\n    child = os.fork()\n    if not child:\n        return work(x - 1) if x else 0\n    return os.waitpid(child, 0)[1]\n", "import ops, os\nresult = ops.work(1)\nprint(result)").__class__("ops:work", None, "import os\ndef work(x):\n    child = os.fork()\n    if not child:\n        os._exit(3)\n    return os.waitpid(child, 0)[1]\n", "import ops\nprint(ops.work(1))"),
    "subprocess": Program("ops:add", 2, ADD, "import ops, subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import ops, sys; print(ops.add(1)); sys.exit(3)'], capture_output=True, text=True))\nprint(ops.add(1))".replace("print(subprocess.run(", "done = subprocess.run(").replace("text=True))", "text=True)\nprint(done.stdout, done.stderr, done.returncode)")),
    "program_in_a_module": Program("ops:add", 1, ADD + "if __name__ == '__main__':\n    print('never')\n", "import ops, sys\nprint(__name__, __file__.rpartition('/')[2], sys.argv[1:], ops.__name__, ops.__spec__.name, ops.add(1))"),
    "path": Program("ops:add", 1, ADD, "import ops, sys\nprint(ops.add(1), [p.rpartition('/')[2] for p in sys.path if 'site' not in p and 'startup' in p], type(ops.__loader__), ops.__spec__.origin.rpartition('/')[2])"),
    "arguments_of_the_program": Program("ops:add", 1, ADD, "import argparse, ops\nparser = argparse.ArgumentParser()\nparser.add_argument('words', nargs='*', default=['a'])\nprint(ops.add(1), parser.parse_args())\nparser.error('wrong')"),
    "change_of_folder": Program("ops:add", 1, ADD, "import ops, os\nos.chdir('/')\nos.environ.clear()\nprint(ops.add(1), os.getcwd())"),
    "closed_streams": Program("ops:add", 1, ADD, "import ops, os, sys\nops.add(1)\nsys.stderr.close()\nsys.stdout.close()\nos.closerange(0, 100)\nos._exit(4)"),
    "no_streams": Program("ops:add", 1, ADD, "import ops, sys\nsys.stdout = sys.stderr = None\nops.add(1)\nraise SystemExit(7)"),
    "hostile_modules": Program("ops:add", 1, ADD, """
import builtins, json, ops, os, threading, time
def fail(*args, **kwargs):
    print("touched")
    raise RuntimeError("no")
ops.add(1)
json.dumps = time.monotonic = time.perf_counter = time.sleep = os.getpid = os.replace = threading.get_ident = fail
builtins.open = fail
"""),
    "no_space": Program("ops:add", None, ADD, "import ops, resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\nprint(sum(ops.add(n) for n in range(9)))"),
    "no_descriptors": Program("ops:add", None, ADD, "import ops, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\nprint(sum(ops.add(n) for n in range(9)))"),
    "parts_are_deleted": Program("ops:add", None, ADD, "import glob, ops, os, shutil, subprocess, sys\nops.add(1)\nshutil.rmtree(next(iter(glob.glob('../**/calls.parts', recursive=True)), ''), ignore_errors=True)\nsubprocess.run([sys.executable, '-c', 'import ops; print(ops.add(3))'], check=True)\nprint(ops.add(2))"),
    "parts_are_hostile": Program("ops:add", None, ADD, """
import glob, ops, os
ops.add(1)
for parts in glob.glob("../**/calls.parts", recursive=True):
    for number, text in enumerate((b"", b"{", b"\\xff" * 9, b"[" * 5000, b'{"module": 3}')):
        with open(os.path.join(parts, f"part-{number}.json"), "wb") as file:
            file.write(text)
    os.mkdir(os.path.join(parts, "part-folder.json"))
    os.mkfifo(os.path.join(parts, "part-pipe.json"))
    os.symlink("/dev/zero", os.path.join(parts, "part-zero.json"))
"""),
    "parts_become_a_file": Program("ops:add", None, ADD, "import glob, ops, os, shutil\nops.add(1)\nfor parts in glob.glob('../**/calls.parts', recursive=True):\n    shutil.rmtree(parts)\n    open(parts, 'w').close()\nprint(ops.add(1))"),
}  # fmt: skip
