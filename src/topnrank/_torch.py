"""PyTorch, which only some of the library needs: found when first asked for, with a sentence where it is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from topnrank._checks import one_of
from topnrank.errors import ParameterError

DEVICES = ("auto", "cuda", "mps", "cpu")


def require_torch(who: str) -> Any:
    """The module torch; a ParameterError where it is not installed. `who` needs it."""
    if find_spec("torch") is None:
        raise ParameterError(
            f"{who} is trained with PyTorch, which is not installed; pip install 'topnrank[torch]' (a trained model answers "
            "without it)"
        )
    import torch

    return torch


def torch_device(name: str, who: str) -> Any:
    """The torch.device of that name; "auto" is the first of cuda, mps and cpu that there is."""
    torch = require_torch(who)
    one_of("device", name, DEVICES)
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        name = next(one for one in DEVICES[1:] if there[one])
    if not there[name]:
        raise ParameterError(
            f"device={name!r}: PyTorch {torch.__version__} finds no such device on this machine; give device='auto', or "
            "install the build of PyTorch for it"
        )
    return torch.device(name)


@contextmanager
def tensor_cores() -> Iterator[None]:
    """Matrix products of a CUDA device may round their factors to TF32 inside; all settings are as before afterwards."""
    import torch

    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def free_bytes(device: Any) -> int | None:
    """Free memory of a CUDA device, with what PyTorch holds and does not use; None for other devices."""
    import torch

    if device.type != "cuda":
        return None
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))
