/* A system that gives no file a second name, as Android's gives apps none. Preload it. */
#include <errno.h>
#include <unistd.h>

static int refuse(void) {
  errno = EACCES;
  return -1;
}

int link(const char *from, const char *to) {
  (void)from;
  (void)to;
  return refuse();
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
  (void)from_folder;
  (void)from;
  (void)to_folder;
  (void)to;
  (void)flags;
  return refuse();
}
