package org.holdfast;

import static org.junit.platform.engine.discovery.ClassNameFilter.includeClassNamePatterns;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectPackage;

import java.io.PrintWriter;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/** Runs the tests whose class names match the argument, or all, and closes with their counts. */
public final class TestRun {
  private TestRun() {}

  public static void main(String[] arguments) {
    String pattern = arguments.length > 0 ? ".*" + arguments[0] + ".*" : ".*Test";
    LauncherDiscoveryRequest request =
        LauncherDiscoveryRequestBuilder.request()
            .selectors(selectPackage("org.holdfast"))
            .filters(includeClassNamePatterns(pattern))
            .build();
    SummaryGeneratingListener counts = new SummaryGeneratingListener();
    LauncherFactory.create().execute(request, counts, new Progress());
    TestExecutionSummary summary = counts.getSummary();
    summary.printFailuresTo(new PrintWriter(System.out, true), 20);
    long failed = summary.getTotalFailureCount();
    System.out.println(
        "jvm: " + summary.getTestsSucceededCount() + " passed, " + failed + " failed");
    System.exit(failed == 0 && summary.getTestsSucceededCount() > 0 ? 0 : 1);
  }

  /** Names each test that failed as soon as it has. */
  private static final class Progress implements TestExecutionListener {
    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
      if (test.isTest())
        System.out.println(
            (result.getStatus() == TestExecutionResult.Status.SUCCESSFUL ? "ok      " : "FAILED  ")
                + test.getUniqueId().replaceAll(".*\\[class:org.holdfast.([^]]*)\\]/", "$1 "));
    }
  }
}
