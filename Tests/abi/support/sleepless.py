"""Processes that wait without time passing: sleeping moves their clock on."""

from __future__ import annotations

import os
import subprocess

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


@pytest.fixture(scope="session")
def sleepless(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which a process that sleeps goes on at once, and its clock with it."""
    folder = tmp_path_factory.mktemp("sleepless")
    source, shim = folder / "clock.c", folder / "clock.so"
    source.write_text(CLOCK, encoding="ascii")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(shim), str(source)], check=True)
    return {"LD_PRELOAD": f"{shim}:{os.environ.get('LD_PRELOAD', '')}".rstrip(":")}
