package org.holdfast;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The programs of the README and of examples/kotlin, in processes of their own. */
@Timeout(900)
class ReadmeTest {
  @TempDir Path folder;

  private String run(String main, String... arguments) throws Exception {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    String path = System.getProperty("java.class.path");
    ProcessBuilder program = new ProcessBuilder(java, "-cp", path, main, Server.URL, Server.KEY, folder.toString());
    program.command().addAll(List.of(arguments));
    program.environment().put("HOLDFAST_PASSWORD", "holdfast-demo");
    Process process = program.redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, process.waitFor(), output);
    return output;
  }

  @ParameterizedTest
  @ValueSource(strings = {"FirstVisit", "FirstVisitKotlinKt"})
  void a_program_of_the_page_signs_in_once_and_stores_its_item(String main) throws Exception {
    long stored = Server.activities("mentor@example.org");
    String first = run(main);
    assertTrue(first.startsWith("sign_in") && first.contains("sent: "), first);
    String second = run(main);
    assertTrue(second.startsWith("home"), second);
    assertEquals(stored + 2, Server.activities("mentor@example.org"));
  }

  @Test
  void the_example_goes_the_seven_steps() throws Exception {
    long stored = Server.activities("mentor@example.org");
    String printed = run("VisitsKt", "mentor@example.org");
    String steps = "sign_in\\nscreen: select_org(\\nscreen: home){2}\\nsent: \\S+\\ncorrected: stored\\ncontacts: [1-9].+\\nunsent .+: 0\\n";
    assertTrue(printed.matches("screen: " + steps), printed);
    assertEquals(stored + 1, Server.activities("mentor@example.org"));
  }
}
