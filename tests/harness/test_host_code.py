"""Protects honest host code around a launch from false refusals.

Host code may choose devices and streams, mark regions for profilers, and wrap functions for torch's compiler.
"""

from __future__ import annotations

import pytest

from harness import DevicePool, Verdict
from tests.support.additions import addition
from tests.support.judging import judge

pytestmark = [pytest.mark.judge, pytest.mark.timeout(180), pytest.mark.asyncio(loop_scope="session")]

DEVICES = addition(
    module="""
    class Guard(torch.cuda.device):
        def __init__(self, tensor):
            super().__init__(tensor.device.index)


    class GuardOf(torch.cuda.device_of):
        pass
    """,
    host="""
    stream = torch.cuda.Stream(device=x.device)
    module = torch.get_device_module()
    with torch.cuda.device(x.device), torch.cuda.device_of(x), torch.cuda._DeviceGuard(0), Guard(x) as guard, GuardOf(x):
        torch.cuda._maybe_exchange_device(torch.cuda._exchange_device(x.get_device()))
    with module.device(x.device), torch.accelerator.device_index(0), torch.cuda.StreamContext(stream):
        torch.accelerator.set_device_index(module.current_device())
    with torch.cuda.stream(torch.accelerator.current_stream()):
        x.record_stream(stream)
    done = torch.cuda.Event()
    done.record(stream)
    stream.wait_event(done)
    stream.wait_stream(torch.cuda.default_stream(x.device))
    stream.synchronize()
    assert isinstance(torch.cuda.device(0), torch.cuda.device)
    assert torch.cuda.device(x.device).idx == 0
    """,
)
WRAPPERS = addition(
    module="""
    @torch.compiler.disable
    def rows(x):
        return x.numel()


    @torch.compiler.disable(recursive=False)
    @torch.cuda.nvtx.range("columns")
    def columns(x):
        return 1


    class Identity(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda")
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, gradient):
            return gradient
    """,
    host="""
    torch.cuda.nvtx.range_push("add")
    with torch.no_grad(), torch.autocast("cuda", enabled=False):
        x = Identity.apply(x)
        assert rows(x) * columns(x) == y.numel()
    torch.cuda.nvtx.range_pop()
    """,
)
PROFILED = addition(
    host="""
    with torch.profiler.record_function("add"), torch.autograd.profiler.record_function("again"):
        x = x.contiguous()
    """
)
COMPILER = addition(
    module="""
    import torch._dynamo

    @torch._dynamo.disable
    def rows(x):
        return x.numel()
    """,
    host="assert rows(x) == y.numel()",
)


SOURCES = {
    "devices": DEVICES,
    "wrappers": WRAPPERS,
    "marks for profilers": PROFILED,
    "imports torch's compiler": COMPILER,
}


@pytest.mark.parametrize(
    "name", [*list(SOURCES)[:-1], pytest.param("imports torch's compiler", marks=pytest.mark.soak)]
)
async def test_host_code_of_libraries_is_correct(pool: DevicePool, name: str) -> None:
    evaluation = await judge(pool, SOURCES[name], cases=("fp32-ragged",), hidden=True)
    assert evaluation.verdict is Verdict.CORRECT, evaluation.error
