package org.holdfast;

import java.util.Arrays;
import java.util.List;
import org.holdfast.Types.*;

/** What a call costs through this binding, typed and decoded. Usage: Bench FOLDER CALLS */
public final class Bench {
  private Bench() {}

  public static void main(String[] arguments) {
    int calls = Integer.parseInt(arguments[1]);
    Config config =
        new Config(arguments[0], new Backend("https://x.supabase.co", "k"))
            .authMethods(List.of())
            .policy(new Policy().biometric(PolicyBiometric.OFF))
            .keystore(new KeyStoreChoice(KeyStoreChoiceKind.FILE));
    try (Holdfast app = Holdfast.open(config)) {
      Runnable small = () -> app.networkSet(new NetworkSetRequest(true));
      Runnable large = app::sessionStatus;
      measured(small, calls); // compiled now
      measured(large, calls);
      System.out.println(measured(small, calls) + " " + measured(large, calls));
    }
  }

  /** Nanoseconds for one call: the median of rounds. */
  private static long measured(Runnable call, int calls) {
    long[] rounds = new long[15];
    for (int round = 0; round < rounds.length; round++) {
      long start = System.nanoTime();
      for (int i = 0; i < calls; i++) call.run();
      rounds[round] = (System.nanoTime() - start) / calls;
    }
    Arrays.sort(rounds);
    return rounds[rounds.length / 2];
  }
}
