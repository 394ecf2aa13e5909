package org.holdfast;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import org.holdfast.jdk.Pkcs12KeyStore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The example apps, in processes of their own, and the programs of the README. */
@Timeout(900)
class ExamplesTest {
  @TempDir Path folder;

  private String run(String main) throws Exception {
    return run(main, Backend.PASSWORD, 0);
  }

  private String run(String main, String password, int status) throws Exception {
    Process process =
        new ProcessBuilder(
                System.getProperty("java.home") + File.separator + "bin" + File.separator + "java",
                "-cp",
                System.getProperty("java.class.path"),
                main,
                Backend.URL,
                Backend.KEY,
                folder.resolve("app").toString(),
                "solo@example.org",
                password)
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(status, process.waitFor(), output);
    return output;
  }

  @ParameterizedTest
  @ValueSource(strings = {"Visit", "VisitKt"})
  void an_example_signs_in_once(String main) throws Exception {
    long stored = Backend.activities("solo@example.org");
    String first = run(main);
    assertTrue(first.contains("screen: sign_in (session_missing)\n"), first);
    assertTrue(first.contains("screen: home"), first);
    String second = run(main);
    assertTrue(!second.contains("screen: sign_in"), second);
    assertEquals(stored + 2, Backend.activities("solo@example.org"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"Visit", "VisitKt"})
  void an_example_with_a_wrong_password_says_so_and_ends(String main) throws Exception {
    String output = run(main, "wrong", 1);
    assertTrue(output.contains("nobody is in: "), output);
    assertEquals(1, output.split("screen: wait \\(signing_in\\)", -1).length - 1, output);
  }

  /** They are in no package, so they are found by name. */
  @Test
  void the_programs_of_the_readme_run() throws Exception {
    long stored = Backend.activities("solo@example.org");
    Class<?> java = Class.forName("ReadmeJava");
    assertTrue((int) java.getField("LINES").get(null) <= 25);
    char[] password = "of the machine".toCharArray();
    java.lang.reflect.Method run =
        Arrays.stream(java.getMethods())
            .filter(one -> one.getName().equals("run"))
            .findFirst()
            .orElseThrow();
    run.invoke(
        null,
        Backend.URL,
        Backend.KEY,
        folder.resolve("java").toString(),
        folder.resolve("java-keys"),
        password,
        Backend.PASSWORD);
    assertEquals(stored + 1, Backend.activities("solo@example.org"));
    Class<?> kotlin = Class.forName("ReadmeKotlinKt");
    assertTrue((int) kotlin.getField("README_KOTLIN_LINES").get(null) <= 25);
    kotlin
        .getMethod("readmeKotlin", Types.Config.class, KeyStore.class, String.class)
        .invoke(
            null,
            Backend.config(folder.resolve("kotlin")),
            new Pkcs12KeyStore(folder.resolve("kotlin-keys"), password),
            Backend.PASSWORD);
    assertEquals(stored + 2, Backend.activities("solo@example.org"));
  }
}
