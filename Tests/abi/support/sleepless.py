"""Processes whose clock moves on only while they sleep, or not at all."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

#: Sleeping takes no time, and moves the clock that waits are measured by. `slept_ns` counts.
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>
long long slept_ns;
int nanosleep(const struct timespec *pause, struct timespec *left) {
  (void)left;
  slept_ns += pause->tv_sec * 1000000000LL + pause->tv_nsec;
  return 0;
}
int usleep(useconds_t pause) { slept_ns += pause * 1000LL; return 0; }
int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, now);
  long long all = now->tv_nsec + slept_ns;
  now->tv_sec += all / 1000000000;
  now->tv_nsec = all % 1000000000;
  return result;
}
"""


#: The clock that waits are measured by stands still: a call waits for a lock until it is free.
PATIENT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, now);
  if (clock == CLOCK_BOOTTIME) *now = (struct timespec){.tv_sec = 1000};
  return result;
}
"""


def preloaded(folder: Path, source: str) -> dict[str, str]:
    """An environment with this C code in the place of the system's functions."""
    text, shim = folder / "clock.c", folder / "clock.so"
    text.write_text(source, encoding="ascii")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(shim), str(text)], check=True)
    return {"LD_PRELOAD": f"{shim}:{os.environ.get('LD_PRELOAD', '')}".rstrip(":")}


@pytest.fixture(scope="session")
def sleepless(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which a process that sleeps goes on at once, and its clock with it."""
    return preloaded(tmp_path_factory.mktemp("sleepless"), CLOCK)


@pytest.fixture(scope="session")
def patient(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which calls wait for locks without a limit."""
    return preloaded(tmp_path_factory.mktemp("patient"), PATIENT)
