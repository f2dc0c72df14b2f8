"""Each program looks up a tile of tokens; rows of a different shard are masked and stay zero."""

import torch
import triton
import triton.language as tl

TASK = "embedding_shard"


@triton.jit
def embedding_kernel(
    ids_ptr,
    table_ptr,
    out_ptr,
    first,
    rows,
    tokens,
    columns,
    table_row,
    out_row,
    TOKENS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + token, mask=token < tokens, other=-1)
    here = (ids >= first) & (ids < first + rows)
    places = tl.where(here, ids - first, 0)
    mask = here[:, None] & (column < columns)[None, :]
    values = tl.load(table_ptr + places[:, None] * table_row + column[None, :], mask=mask, other=0)
    inside = (token < tokens)[:, None] & (column < columns)[None, :]
    tl.store(out_ptr + token.to(tl.int64)[:, None] * out_row + column[None, :], values, mask=inside)


class ShardedEmbedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ids, table, first):
        flat = ids.reshape(-1)
        rows, columns = table.shape
        out = torch.empty((flat.shape[0], columns), dtype=table.dtype, device=ids.device)
        grid = lambda meta: (triton.cdiv(flat.shape[0], meta["TOKENS"]), triton.cdiv(columns, meta["BLOCK"]))
        embedding_kernel[grid](
            flat,
            table,
            out,
            first,
            rows,
            flat.shape[0],
            columns,
            table.stride(0),
            out.stride(0),
            TOKENS=8,
            BLOCK=64,
        )
        ctx.save_for_backward(ids)
        ctx.rows = rows
        return out.view(*ids.shape, columns)

    @staticmethod
    def backward(ctx, grad):
        (ids,) = ctx.saved_tensors
        table = torch.zeros((ctx.rows, grad.shape[-1]), dtype=grad.dtype, device=grad.device)
        return None, table.index_add_(0, ids.view(-1), grad.view(-1, grad.shape[-1])), None


def embedding_shard(ids, table, first):
    return ShardedEmbedding.apply(ids, table, first)
