"""Where the tests run Triton's kernels: on a GPU if there is one, else through the interpreter."""

import torch

HAS_CUDA = torch.cuda.is_available()

KERNEL_DEVICE = torch.device("cuda" if HAS_CUDA else "cpu")
