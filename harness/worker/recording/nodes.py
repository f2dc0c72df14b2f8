"""Runs the nodes of a test in pytest's form. The first run chooses nodes, later runs repeat them."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from suites.public.syntax.script import NO_TEST

from .call_log import CallLog
from .execution import EndsHere, TimeLimit

if TYPE_CHECKING:
    import pytest

NODE_S = 4.0
"""CPU seconds for each of many nodes, while nodes are chosen. A test with few nodes has more time for each node."""
GPU_NODE_S = 12.0
"""The same on a GPU, where a node's time is that of its compiler."""
CHOSEN_S = 6.0
"""CPU seconds of the chosen nodes, after which no further node is chosen."""
_OPTIONS = (
    *("--noconftest", "--assert=plain", "--capture=no", "--tb=native", "-qq", "--no-header", "--no-summary"),
    *("-c", os.devnull, "-p", "no:cacheprovider", "-p", "no:warnings", "-p", "no:logging"),
    *("-p", "no:unraisableexception", "-p", "no:threadexception", "-p", "no:faulthandler"),
)


@dataclass(eq=False)
class NodeRun:
    """Runs the nodes of a module that is executed already, as a plugin of pytest."""

    module: ModuleType
    file: Path
    wanted: tuple[str, ...]
    """Nodes to run, in this order; empty: choose nodes."""
    budget_s: float
    """CPU seconds for the choice of nodes."""
    log: CallLog
    """Records the calls of the nodes."""
    on_gpu: bool = False
    chosen: list[str] = field(default_factory=list)
    collected: int = 0
    problems: dict[str, str] = field(default_factory=dict)
    """First error of each node that failed or was skipped."""
    slow: list[str] = field(default_factory=list)
    """Nodes that take too long or are too large."""

    def run(self) -> None:
        """Run the test with pytest in this process; this object is the plugin that chooses and runs its nodes.

        Failures of nodes are kept in `problems`. Variables of pytest in the environment are removed for good.
        """
        import pytest  # only here: workers of other roles start without it

        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
            os.environ.pop(name, None)
        folder = self.file.parent
        pytest.main(
            [*_OPTIONS, f"--rootdir={folder}", f"--confcutdir={folder}", str(self.file)], plugins=[self]
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Facts about the choice of nodes."""
        notes = [f"{len(self.chosen)} of the test's {self.collected} nodes are run"]
        if self.slow:
            notes.append(
                f"{len(self.slow)} node(s) take too long or are too large here, such as {self.slow[0]}"
            )
        if not self.chosen and self.problems:
            name, problem = next(iter(self.problems.items()))
            notes.append(f"{len(self.problems)} node(s) fail or are skipped here, such as {name}: {problem}")
        return tuple(notes)

    def pytest_pycollect_makemodule(self, module_path: Path, parent: pytest.Collector) -> pytest.Module:
        """Return a collector of the executed module."""
        import pytest

        module = self.module

        class Executed(pytest.Module):
            def _getobj(self) -> ModuleType:
                return module

        return Executed.from_parent(parent, path=module_path)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the wanted nodes, or choose some in an order that mixes functions and parameters."""
        import pytest

        nodes = {
            _name(item): item
            for item in session.items
            if isinstance(item, pytest.Function) and not NO_TEST.fullmatch(item.originalname)
        }
        self.collected = len(nodes)
        if self.wanted:
            for name in self.wanted:
                if name in nodes:
                    _run(nodes[name])
        else:
            self._choose(nodes)
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note why pytest cannot collect the test."""
        if report.failed:
            self.problems["collection"] = report.longreprtext.strip().rpartition("\n")[2][:300]

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
        """Note the error of a node."""
        if call.excinfo is not None and not call.excinfo.errisinstance(EndsHere):
            line = call.excinfo.exconly(tryshort=True).strip().partition("\n")[0]
            self.problems.setdefault(_name(item), line[:300])

    def _choose(self, nodes: dict[str, pytest.Function]) -> None:
        """Run nodes until enough time is spent, in an order that mixes the functions of the test; note those worth repeating.

        Chosen are nodes with calls that can be judged. A node that takes too long or too much memory is `slow`, and larger
        nodes of its function are not tried.
        """
        node_s = max(GPU_NODE_S if self.on_gpu else NODE_S, self.budget_s / max(1, len(nodes)))
        end = time.process_time() + self.budget_s
        chosen_s = 0.0
        too_large: dict[str, int] = {}  # the size from which the nodes of a function are skipped
        for name in sorted(nodes, key=_mixed):
            function, size = nodes[name].originalname, _size(nodes[name])
            if size >= too_large.get(function, size + 1):
                self.slow.append(name)
                continue
            remaining_s = end - time.process_time()
            if self.log.is_full or chosen_s > CHOSEN_S or remaining_s <= 0:
                return
            judged, oversized, began = self.log.judged, self.log.oversized, time.process_time()
            limit = TimeLimit(min(node_s, remaining_s))
            with suppress(EndsHere), limit:
                _run(nodes[name])
            if limit.is_over or self.log.oversized > oversized:
                self.slow.append(name)
                too_large[function] = size
            elif self.log.judged > judged:
                self.chosen.append(name)
                chosen_s += time.process_time() - began


def _run(item: pytest.Item) -> None:
    item.ihook.pytest_runtest_protocol(item=item, nextitem=None)


def _name(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[2]


def _size(node: pytest.Function) -> int:
    """Return the product of a node's numbers: nodes of one function with larger numbers take longer."""
    parameters = node.callspec.params.values() if hasattr(node, "callspec") else ()
    return math.prod(abs(number) for number in _numbers(tuple(parameters)))


def _numbers(value: Any) -> Iterator[int]:
    """Yield the integers other than 0 in a value, also those inside tuples and lists; no booleans."""
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _numbers(part)
    elif type(value) is int and value:
        yield value


def _mixed(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=8).digest()
