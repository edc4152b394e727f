"""The few calls of libcuda and libcublas that the load test needs, through ctypes: no compiler, no package.

Signatures after NVIDIA's CUDA driver API and cuBLAS reference (cuda.h, cublas_api.h of CUDA 11 to 13). The names
with _v2 are what the headers' short names stand for.
"""

from __future__ import annotations

import ctypes as c
import glob
import os
from pathlib import Path
from typing import Any, Iterable, List, Tuple

LIBCUDA = ("libcuda.so.1",)
LIBCUBLAS = ("libcublas.so.13", "libcublas.so.12", "libcublas.so.11")
_FOLDERS = (
    "usr/local/cuda/lib64",
    "usr/local/cuda-*/lib64",
    "usr/local/cuda*/targets/*/lib",
    "usr/lib/*-linux-gnu",
    "usr/lib64",
    "opt/*/lib/python3*/site-packages/nvidia/cublas/lib",
)

SM_COUNT, R_16F, R_32F, COMPUTE_32F, OP_N, DEFAULT_ALGORITHM = 16, 2, 0, 68, 0, -1
"""CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUBLAS_OP_N, ..._DEFAULT."""


class CudaError(RuntimeError):
    """A call failed, with its name and CUDA's word for the reason."""


class MissingError(RuntimeError):
    """A library is not there: nothing can be run, which says nothing about the GPUs."""


def _places(names: Iterable[str], root: str) -> List[str]:
    """Where to look: as the loader finds it, then CUDA's own folders. A simulated node has only its own files."""
    below = [path for folder in _FOLDERS for path in sorted(glob.glob(os.path.join(root or "/", folder)))[::-1]]
    inside = [os.path.join(folder, name) for name in names for folder in below]
    return (list(names) if not root.rstrip("/") else []) + [path for path in inside if Path(path).exists()]


def open_library(names: Tuple[str, ...], root: str = "/") -> c.CDLL:
    """The first of the libraries that loads. Raises MissingError, saying which were tried."""
    problems = []
    for place in _places(names, root):
        # libcublas needs libcublasLt of its own folder, which the loader does not search by itself.
        beside = place.replace("libcublas.", "libcublasLt.")
        try:
            if "/" in place and beside != place and Path(beside).exists():
                c.CDLL(beside, mode=c.RTLD_GLOBAL)
            return c.CDLL(place)
        except OSError as error:
            problems.append(str(error))
    # The loader's text begins with the name; of several the newest library's says most.
    raise MissingError(problems[0] if problems else f"{names[0]}: not found")


class CudaDriver:
    """libcuda, with every result checked."""

    def __init__(self, library: c.CDLL) -> None:
        self._library = library
        self.call("cuInit", c.c_uint(0))

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function by name. Raises CudaError for any result but success."""
        function = getattr(self._library, name, None)
        if function is None:
            raise MissingError(f"libcuda has no {name}: the driver is too old")
        code = function(*arguments)
        if code:
            raise CudaError(f"{name}: {self._word(code)}")

    def _word(self, code: int) -> str:
        text = c.c_char_p()
        name = getattr(self._library, "cuGetErrorName", None)
        known = name is not None and name(c.c_int(code), c.byref(text)) == 0 and text.value
        return f"{text.value.decode('ascii', 'replace')} ({code})" if known and text.value else f"error {code}"

    def count(self) -> int:
        """GPUs that CUDA sees."""
        found = c.c_int()
        self.call("cuDeviceGetCount", c.byref(found))
        return found.value


class Gpu:
    """One GPU with its primary context, which is the one that cuBLAS works in."""

    def __init__(self, driver: CudaDriver, index: int) -> None:
        self._driver = driver
        self._device = c.c_int()
        driver.call("cuDeviceGet", c.byref(self._device), c.c_int(index))
        context = c.c_void_p()
        driver.call("cuDevicePrimaryCtxRetain", c.byref(context), self._device)
        driver.call("cuCtxSetCurrent", context)

    def name(self) -> str:
        """The product's name."""
        return self._text("cuDeviceGetName")

    def pci(self) -> str:
        """Its PCI address."""
        return self._text("cuDeviceGetPCIBusId")

    def _text(self, call: str) -> str:
        buffer = c.create_string_buffer(128)
        self._driver.call(call, buffer, c.c_int(len(buffer)), self._device)
        return buffer.value.decode("ascii", "replace")

    def sm_count(self) -> int:
        """Its multiprocessors: with another number cuBLAS may add in another order."""
        found = c.c_int()
        self._driver.call("cuDeviceGetAttribute", c.byref(found), c.c_int(SM_COUNT), self._device)
        return found.value

    def allocate(self, size: int) -> c.c_uint64:
        """Memory on the GPU."""
        pointer = c.c_uint64()
        self._driver.call("cuMemAlloc_v2", c.byref(pointer), c.c_size_t(size))
        return pointer

    def upload(self, pointer: c.c_uint64, data: bytes) -> None:
        """Copy to the GPU."""
        self._driver.call("cuMemcpyHtoD_v2", pointer, c.c_char_p(data), c.c_size_t(len(data)))

    def download(self, pointer: c.c_uint64, size: int) -> bytes:
        """Copy from the GPU."""
        buffer = c.create_string_buffer(size)
        self._driver.call("cuMemcpyDtoH_v2", buffer, pointer, c.c_size_t(size))
        return buffer.raw

    def finish(self) -> None:
        """Wait until the GPU has done all it was given."""
        self._driver.call("cuCtxSynchronize")


class Blas:
    """libcublas on the current GPU."""

    def __init__(self, library: c.CDLL) -> None:
        self._library = library
        self._handle = c.c_void_p()
        self._call("cublasCreate_v2", c.byref(self._handle))

    def _call(self, name: str, *arguments: Any) -> None:
        function = getattr(self._library, name, None)
        if function is None:
            raise MissingError(f"libcublas has no {name}: CUDA is too old")
        code = function(*arguments)
        if code:
            raise CudaError(f"{name}: cuBLAS status {code}")

    def multiply(self, order: int, a: c.c_uint64, b: c.c_uint64, product: c.c_uint64) -> None:
        """Multiply a x b into product: square, half precision in, single precision out, on the tensor cores."""
        one, zero, n = c.c_float(1), c.c_float(0), c.c_int(order)
        half, single = c.c_int(R_16F), c.c_int(R_32F)
        self._call(
            "cublasGemmEx", self._handle, c.c_int(OP_N), c.c_int(OP_N), n, n, n, c.byref(one), a, half, n, b, half, n,
            c.byref(zero), product, single, n, c.c_int(COMPUTE_32F), c.c_int(DEFAULT_ALGORITHM),
        )  # fmt: skip

    def difference(self, count: int, wanted: c.c_uint64, got: c.c_uint64) -> float:
        """The sum of |got - wanted|: exactly 0 when all numbers are equal. Overwrites `got`."""
        minus, total, n, step = c.c_float(-1), c.c_float(), c.c_int(count), c.c_int(1)
        self._call("cublasSaxpy_v2", self._handle, n, c.byref(minus), wanted, step, got, step)
        self._call("cublasSasum_v2", self._handle, n, got, step, c.byref(total))
        return total.value

    def largest(self, count: int, values: c.c_uint64) -> int:
        """Where the value furthest from 0 is."""
        found = c.c_int()
        self._call("cublasIsamax_v2", self._handle, c.c_int(count), values, c.c_int(1), c.byref(found))
        return found.value - 1
