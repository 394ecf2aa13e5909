package org.holdfast;

import java.nio.charset.StandardCharsets;
import java.util.*;
import org.holdfast.Types.*;

/** What a call costs through this binding, typed and decoded, over its native alone. Usage: Bench FOLDER CALLS */
public final class Bench {
  private Bench() {}

  public static void main(String[] arguments) {
    int calls = Integer.parseInt(arguments[1]);
    Config config =
        new Config(arguments[0], new Backend("https://x.supabase.co", "k"))
            .authMethods(List.of())
            .policy(new Policy().biometric(PolicyBiometric.OFF))
            .keystore(new KeyStoreChoice(KeyStoreChoiceKind.FILE));
    Handle natives = Handle.in(Handle.open(Json.write(config.fields), null));
    try (Holdfast app = Holdfast.open(config)) {
      NetworkReportRequest online = new NetworkReportRequest(true);
      compare("network_report (empty reply)", natives, online.toMap(), () -> app.networkReport(online), calls);
      compare("session_status (a typed reply)", natives, null, app::sessionStatus, calls);
    }
    natives.close();
  }

  private static void compare(
      String title, Handle natives, java.util.Map<String, ?> request, Runnable typed, int calls) {
    byte[] name = title.split(" ")[0].getBytes(StandardCharsets.UTF_8);
    byte[] bytes = request == null ? null : Json.write(request);
    Runnable alone = () -> natives.call(name, bytes);
    for (Runnable one : List.of(alone, typed)) measured(one, calls); // compiled now
    double floor = measured(alone, calls), whole = measured(typed, calls);
    System.out.printf(
        "%-32s %6.1f µs, its native %.1f, over it %.1f%n", title, whole, floor, whole - floor);
  }

  /** Microseconds for one call: the median of rounds. */
  private static double measured(Runnable call, int calls) {
    double[] rounds = new double[15];
    for (int round = 0; round < rounds.length; round++) {
      long start = System.nanoTime();
      for (int i = 0; i < calls; i++) call.run();
      rounds[round] = (System.nanoTime() - start) / 1000.0 / calls;
    }
    Arrays.sort(rounds);
    return rounds[rounds.length / 2];
  }
}
