"""Builds the C++ kernels in csrc/ into one plain shared library; the rest of the build is in pyproject.toml.

The library knows nothing of Python: every version loads it through ctypes. Where it cannot be compiled the package
installs without it and computes with torch.
"""

import os
import platform
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

SOURCES = Path("csrc")
COMMON = ["-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-ffp-contract=off"]
COMMON += ["-fno-math-errno", "-g0", "-Wall", "-Wextra", "-Wno-psabi", "-Wno-maybe-uninitialized"]
X86 = {
    "baseline": ["-DKG_REGISTER=16"],
    "avx2": ["-DKG_REGISTER=32", "-mavx2", "-mfma"],
    "avx512": ["-DKG_REGISTER=64", "-mavx2", "-mfma", *(f"-mavx512{part}" for part in ("f", "vl", "dq", "bw"))],
}
INSTRUCTION_SETS = X86 if platform.machine() in ("x86_64", "AMD64") else {"baseline": ["-DKG_REGISTER=16"]}


class BuildKernels(build_ext):
    """One translation unit for each instruction set, linked into one library."""

    def build_extension(self, ext):
        extra = os.environ.get("KURAMOTOGNN_CXXFLAGS", "").split()  # Such as sanitizers; also given to the linker.
        jobs = [("kernels.cpp", isa, flags) for isa, flags in INSTRUCTION_SETS.items()]
        jobs += [(name, "common", []) for name in ("common.cpp",)]

        def compiled(job):
            name, isa, flags = job
            flags = [*COMMON, f"-DKG_ISA={isa}", *flags, *extra]
            folder = str(Path(self.build_temp) / isa)
            return self.compiler.compile(
                [str(SOURCES / name)], output_dir=folder, extra_postargs=flags, depends=ext.depends
            )

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = [file for files in pool.map(compiled, jobs) for file in files]
        self.compiler.link_shared_object(
            objects, self.get_ext_fullpath(ext.name), extra_postargs=["-pthread", *extra], target_lang="c++"
        )

    def get_ext_filename(self, fullname):
        """Without the name of a Python version."""
        return str(Path(*fullname.split("."))) + ".so"


class PlatformWheel(bdist_wheel):
    """For one platform and every Python 3."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


headers = sorted(str(path) for path in SOURCES.iterdir())
setup(
    ext_modules=[
        Extension(
            "kuramotognn.kernels.libkuramotognn",
            [str(SOURCES / "kernels.cpp")],
            depends=headers,
            language="c++",
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildKernels, "bdist_wheel": PlatformWheel},
)
