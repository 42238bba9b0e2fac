"""Compile every kernel as for an A100 and an H100, and print which ones load or store 16 bytes at a time.

A script of its own: the process that runs the other tests has Triton's interpreter on.
"""

import re

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from poolproof_fast import kernels


def show(name, kernel, pointers, constants, capability):
    """Pointers are taken to be aligned where the kernel is specialised on it, as the allocator's are."""
    types = {**pointers, **dict.fromkeys(constants, "constexpr")}
    signature = {argument: types.get(argument, "i32") for argument in kernel.arg_names}
    loose = kernel.do_not_specialize_on_alignment
    aligned = {
        (place,): [["tt.divisibility", 16]]
        for place, argument in enumerate(kernel.arg_names)
        if argument in pointers and argument not in loose
    }
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=aligned)
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": kernels.WARPS})
    wide = re.search(r"(ld|st)\.global\.(v2\.b64|v4\.b32)", compiled.asm["ptx"])
    print(f"{name} sm_{capability}:{'yes' if wide else 'no'}")


for capability in (80, 90):
    for page_bytes in (64, 4096, 65536, 48, 4104):
        _, page_words, rows, columns = kernels._tiles(torch.zeros(0, dtype=torch.uint8), page_bytes)
        tile = {"PAGE_WORDS": page_words, "ROWS": rows, "COLUMNS": columns}
        pointers = {"words": "*i64", "sources": "*i32", "destinations": "*i32"}
        show(f"copy {page_bytes}", kernels._copy_pages_kernel, pointers, tile, capability)
        if page_bytes == 4096:
            pointers = {"words": "*i64", "pages": "*i32"}
            show(f"fill {page_bytes}", kernels._fill_pages_kernel, pointers, {"WORD": -1, **tile}, capability)
    block = {"BLOCK": kernels.BLOCK_ENTRIES}
    pointers = {"table": "*i32", "positions": "*i32", "values": "*i32"}
    show("scatter", kernels._scatter_kernel, pointers, block, capability)
    for bits in (32, 64):
        pointers = {"page_of": "*i32", "token_ids": f"*i{bits}", "out": f"*i{bits}"}
        show(f"translate int{bits}", kernels._translate_kernel, pointers, {"PAGE_TOKENS": 16, **block}, capability)
