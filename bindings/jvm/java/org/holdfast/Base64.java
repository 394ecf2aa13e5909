package org.holdfast;

import java.util.Arrays;

/**
 * Base64 (RFC 4648, with padding) for the keys in key requests. The JDK's own class is missing on
 * Android before version 8.
 */
final class Base64 {
  private static final String DIGITS =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  private static final int[] VALUES = new int[128];

  static {
    Arrays.fill(VALUES, -1);
    for (int i = 0; i < DIGITS.length(); i++) VALUES[DIGITS.charAt(i)] = i;
  }

  private Base64() {}

  static String encode(byte[] bytes) {
    StringBuilder text = new StringBuilder((bytes.length + 2) / 3 * 4);
    for (int at = 0; at < bytes.length; at += 3) {
      int left = bytes.length - at;
      int group = (bytes[at] & 255) << 16;
      if (left > 1) group |= (bytes[at + 1] & 255) << 8;
      if (left > 2) group |= bytes[at + 2] & 255;
      text.append(DIGITS.charAt(group >> 18)).append(DIGITS.charAt(group >> 12 & 63));
      text.append(left > 1 ? DIGITS.charAt(group >> 6 & 63) : '=');
      text.append(left > 2 ? DIGITS.charAt(group & 63) : '=');
    }
    return text.toString();
  }

  static byte[] decode(String text) {
    int padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
    if (text.length() % 4 != 0) throw new IllegalArgumentException("not base64");
    byte[] bytes = new byte[text.length() / 4 * 3 - padding];
    int filled = 0;
    for (int at = 0; at < text.length(); at += 4) {
      int group = 0;
      for (int i = at; i < at + 4; i++) {
        char digit = text.charAt(i);
        int value = i >= text.length() - padding ? 0 : digit < 128 ? VALUES[digit] : -1;
        if (value < 0) throw new IllegalArgumentException("not base64");
        group = group << 6 | value;
      }
      for (int shift = 16; shift >= 0 && filled < bytes.length; shift -= 8)
        bytes[filled++] = (byte) (group >> shift);
    }
    return bytes;
  }
}
