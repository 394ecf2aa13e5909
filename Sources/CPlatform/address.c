/* Addresses of machines. */
#include "platform.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

int platform_address(const uint8_t *text, size_t count, uint8_t bytes[16]) {
  char copy[INET6_ADDRSTRLEN];
  if (count >= sizeof copy)
    return 0;
  memcpy(copy, text, count);
  copy[count] = 0;
  if (inet_pton(AF_INET, copy, bytes) == 1)
    return 4;
  return inet_pton(AF_INET6, copy, bytes) == 1 ? 16 : 0;
}
