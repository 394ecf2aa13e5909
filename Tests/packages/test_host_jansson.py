"""A host that uses jansson itself, with an allocator of its own, before and beside the library."""

from __future__ import annotations

from pathlib import Path

import pytest

from consumers import run

PROGRAM = r"""
#include <assert.h>
#include <holdfast.h>
#include <holdfast_http.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long taken, given_back;

/* Blocks with a head: free() of one that is not the host's own ends the process. */
static void *take(size_t size) {
  char *block = malloc(size + 16);
  if (block == NULL)
    return NULL;
  taken++;
  memcpy(block, "the host's block", 16);
  return block + 16;
}

static void give_back(void *bytes) {
  if (bytes == NULL)
    return;
  given_back++;
  assert(memcmp((char *)bytes - 16, "the host's block", 16) == 0);
  free((char *)bytes - 16);
}

static const char *config = "{\"data_dir\":\"data\",\"keystore\":{\"kind\":\"file\"},"
                       "\"policy\":{\"biometric\":\"off\"},\"auth_methods\":[],\"backend\":"
                       "{\"url\":\"http://127.0.0.1:9\",\"api_key\":\"k\"}}";

int main(void) {
  json_set_alloc_funcs(take, give_back);
  json_t *before = json_pack("{s:[i,i],s:s}", "a", 1, 2, "b", "text");
  long used = taken;
  assert(used > 0);
  holdfast *app = NULL;
  char *reply = NULL;
  int32_t status = holdfast_open(config, NULL, &app, &reply);
  if (status != HOLDFAST_OK) {
    fprintf(stderr, "%s\n", reply);
    return 1;
  }
  holdfast_free(reply);
  assert(holdfast_session_status(app, NULL, &reply) == HOLDFAST_OK);
  holdfast_free(reply);
  holdfast_http *driver = NULL;
  assert(holdfast_http_start(app, NULL, &driver) == HOLDFAST_OK);
  /* The library and the driver have allocated nothing through the host's jansson, */
  assert(taken == used && given_back == 0);
  /* which still has the host's functions, */
  json_malloc_t allocate = NULL;
  json_free_t release = NULL;
  json_get_alloc_funcs(&allocate, &release);
  assert(allocate == take && release == give_back);
  /* and gives back what it allocated before. */
  char *text = json_dumps(before, JSON_SORT_KEYS);
  assert(strcmp(text, "{\"a\": [1, 2], \"b\": \"text\"}") == 0);
  give_back(text);
  json_decref(before);
  holdfast_http_stop(driver);
  holdfast_close(app);
  assert(taken == given_back);
  puts("the host's jansson is the host's");
  return 0;
}
"""


@pytest.mark.parametrize("linked", ["shared", "static"])
def test_the_jansson_of_the_host_stays_as_it_is(
    installed: Path, tmp_path: Path, linked: str
) -> None:
    source = tmp_path / "host.c"
    source.write_text(PROGRAM, "utf-8")
    found = {"PKG_CONFIG_PATH": str(installed / "lib/pkgconfig")}
    options = ["--static"] if linked == "static" else []
    flags = run("pkg-config", "--cflags", "--libs", *options, "holdfast_http", environment=found)
    if linked == "static":
        for name in ("holdfast", "holdfast_http", "holdfast_keys"):
            flags = flags.replace(f"-l{name} ", f"-l:lib{name}.a ")
    program = tmp_path / "host"
    rpath = f"-Wl,-rpath,{installed / 'lib'}"
    # The host's jansson comes first, as in an app that had it before.
    run("cc", "-Wall", "-Wextra", source, "-o", program, "-ljansson", *flags.split(), rpath)
    assert run(program, folder=tmp_path).strip() == "the host's jansson is the host's"
