"""Sets the wheel's tag: the platform of its library, or any platform for a wheel without one.

Puts the library's bill of materials into the wheel, as PEP 770 says. Everything else is in
pyproject.toml.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel

PACKAGE = Path(__file__).parent / "src" / "holdfast"
#: The bills of materials of the library, which build.sh puts here.
BILLS = Path(__file__).parent / "sboms"
CARRIED = [path for path in PACKAGE.iterdir() if path.suffix in {".so", ".dylib", ".dll"}]

#: The files of glibc: the C library, the mathematics library, and the loader.
GLIBC = ("libc.so.", "libm.so.", "ld-linux")

#: Names of processors: readelf's, and those of platform tags.
MACHINES = {"AArch64": "aarch64", "Advanced Micro Devices X86-64": "x86_64"}


def platform_of(library: Path) -> str:
    """The platform tag of a library.

    On glibc it is manylinux_2_N (PEP 600), where 2.N is the newest version of glibc's symbols that
    the library needs, provided that it needs only glibc.
    """
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    if not sys.platform.startswith("linux"):
        return platform
    # The library may be for another processor than this machine's.
    [machine] = re.findall(r"Machine: +(.*)", read_elf("-h", library))
    platform = f"linux_{MACHINES[machine]}"
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", read_elf("-d", library)))
    versions = [int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", read_elf("-V", library))]
    foreign = [name for name in needed if not name.startswith(GLIBC)]
    if versions and not foreign:
        return platform.replace("linux", f"manylinux_2_{max(versions)}", 1)
    return platform


def read_elf(option: str, library: Path) -> str:
    """The output of readelf."""
    command = ["readelf", "-W", option, str(library)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Wheel(bdist_wheel):
    """A wheel for one platform and every Python version: the library is loaded at run time."""

    def get_tag(self) -> tuple[str, str, str]:
        """The tags of Python, ABI and platform."""
        return "py3", "none", platform_of(CARRIED[0]) if CARRIED else "any"

    def egg2dist(self, egginfo_path: str, distinfo_path: str) -> None:
        """Make the folder .dist-info, with the bills of materials in it."""
        super().egg2dist(egginfo_path, distinfo_path)
        if BILLS.is_dir():
            shutil.copytree(BILLS, Path(distinfo_path) / "sboms")


class Carrying(Distribution):
    """A distribution that is platform-specific if it carries the library."""

    def has_ext_modules(self) -> bool:
        """Whether the package carries the library."""
        return bool(CARRIED)


setup(cmdclass={"bdist_wheel": Wheel}, distclass=Carrying)
