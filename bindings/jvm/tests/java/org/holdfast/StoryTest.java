package org.holdfast;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The acceptance story: sign in, choose, lose the network, queue, be killed, unlock, drain, log out.
 * The app, in Java and in Kotlin, runs in processes of its own, over PKCS#12 files as its key store.
 */
@Timeout(900)
class StoryTest {
  private static final String USER = "mentor@example.org";

  @TempDir Path folder;
  private Process process;
  private BufferedReader output;

  @AfterEach
  void end() throws Exception {
    if (process != null) process.destroyForcibly().waitFor();
    Backend.heal();
  }

  private void start(String main) throws IOException {
    process =
        new ProcessBuilder(
                System.getProperty("java.home") + File.separator + "bin" + File.separator + "java",
                "-Xcheck:jni",
                "-cp",
                System.getProperty("java.class.path"),
                main,
                folder.toString())
            .redirectErrorStream(true)
            .start();
    output =
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
  }

  /** Carries out a command; what the app answers. */
  private String app(String command) throws IOException {
    process.getOutputStream().write((command + "\n").getBytes(StandardCharsets.UTF_8));
    process.getOutputStream().flush();
    for (String line; (line = output.readLine()) != null; ) {
      if (line.startsWith("> ")) return line.substring(2);
      System.out.println("story: " + line); // run.py looks for complaints of -Xcheck:jni
    }
    throw new IOException("the app has ended");
  }

  private void kill() throws InterruptedException {
    process.destroyForcibly().waitFor();
    assertEquals(128 + 9, process.exitValue(), "SIGKILL");
  }

  @ParameterizedTest
  @ValueSource(strings = {"org.holdfast.StoryApp", "org.holdfast.StoryAppKotlinKt"})
  void the_story(String main) throws Exception {
    long stored = Backend.activities(USER);
    // Given a user who signs in and chooses one of two organisations
    start(main);
    assertEquals("sign_in session_missing", app("start"));
    assertEquals("select_org first_choice", app("sign_in " + USER));
    String[] orgs = app("orgs").split(" ");
    assertEquals(2, orgs.length);
    assertTrue(app("choose " + orgs[0]).startsWith("home "));
    // When the network goes, three visits are made, and the app is left and killed
    Backend.drop("/");
    assertEquals("pending", app("visit 15"));
    assertEquals("pending", app("visit 30"));
    assertEquals("pending", app("visit 45"));
    assertTrue(app("leave").startsWith("home "));
    kill();
    assertEquals(stored, Backend.activities(USER));
    // Then the next start asks for the user, and a dismissed prompt lets nobody in
    Files.write(folder.resolve("prompts"), List.of("cancelled", "ok"));
    start(main);
    assertTrue(app("start").startsWith("unlock "));
    assertTrue(app("unlock").startsWith("sign_in biometric_cancelled"));
    assertTrue(app("unlock").startsWith("home "));
    assertEquals("3 0", app("unsent"));
    // And with the network everything arrives, once
    Backend.heal();
    assertEquals("3", app("drain"));
    assertEquals("0 0", app("unsent"));
    assertEquals(stored + 3, Backend.activities(USER));
    // And the logout leaves no key of the session
    assertEquals("0 sign_in signed_out", app("log_out"));
    process.getOutputStream().close();
    assertEquals(0, process.waitFor());
    StoryKeyStore keys = new StoryKeyStore(folder);
    assertNull(keys.load("session", null));
    assertNull(keys.load("biometric", null));
    assertEquals(32, keys.load("device", null).length);
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path one : (Iterable<Path>) files.filter(Files::isRegularFile)::iterator)
        assertTrue(!Files.readString(one, StandardCharsets.ISO_8859_1).contains("Nordlys"), one + "");
    }
  }
}
