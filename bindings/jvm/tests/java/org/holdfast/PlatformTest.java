package org.holdfast;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * What the classes for Android refer to. They are compiled for Java 8, and Android 7 lacks some of
 * that.
 */
class PlatformTest {
  /** In Java 8, and on Android only since 8.0 or later, or never. */
  private static final List<String> MISSING =
      List.of(
          "java/util/Base64", "java/time/", "java/nio/file/", "java/lang/ref/Cleaner", "java/net/http/",
          "java/lang/invoke/VarHandle", "javax/xml/bind", "sun/misc");

  @Test
  void the_classes_for_android_use_what_android_7_has() throws IOException {
    Path classes = Path.of(System.getProperty("holdfast.classes"));
    TreeSet<String> found = new TreeSet<>();
    int read = 0;
    for (String part : List.of("core", "okhttp", "kotlin", "android")) {
      try (Stream<Path> files = Files.walk(classes.resolve(part))) {
        for (Path one : (Iterable<Path>) files.filter(f -> f.toString().endsWith(".class"))::iterator) {
          read++;
          byte[] bytes = Files.readAllBytes(one);
          int version = (bytes[6] & 255) << 8 | bytes[7] & 255;
          assertEquals(52, version, one + " is not for Java 8");
          String constants = new String(bytes, StandardCharsets.ISO_8859_1);
          for (String name : MISSING)
            if (constants.contains(name)) found.add(one.getFileName() + " uses " + name);
        }
      }
    }
    assertTrue(read > 150, "read " + read);
    assertEquals(new TreeSet<String>(), found);
  }
}
