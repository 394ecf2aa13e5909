package org.holdfast;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.util.Map;
import org.holdfast.Types.*;
import org.holdfast.jdk.JdkHttpSender;

/**
 * The app of the story: carries out one command for each line of its input, and prints one line for
 * each. Usage: StoryApp FOLDER
 */
public final class StoryApp {
  private final Holdfast app;
  private final Collector events = new Collector();

  private StoryApp(Path folder) {
    Config config =
        Backend.config(folder.resolve("data"))
            .policy(
                new Policy()
                    .biometric(PolicyBiometric.REQUIRED)
                    .lockOnBackground(PolicyLockOnBackground.AT_ONCE));
    app = Holdfast.open(config, new StoryKeyStore(folder));
    new Runner(app, new JdkHttpSender(), events).start();
  }

  public static void main(String[] arguments) throws Exception {
    StoryApp story = new StoryApp(Path.of(arguments[0]));
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = commands.readLine()) != null; )
      System.out.println("> " + story.done(line.split(" ")));
    story.app.close();
  }

  private String done(String[] words) throws Exception {
    switch (words[0]) {
      case "start":
        return shown(app.sessionResume());
      case "sign_in":
        return shown(app.signInComplete(new SignInPassword(words[1], Backend.PASSWORD)));
      case "choose":
        return shown(app.orgSelect(new OrgSelectRequest(words[1])));
      case "orgs":
        StringBuilder ids = new StringBuilder();
        app.orgList().getOrgs().forEach(one -> ids.append(one.getOrgId()).append(' '));
        return ids.toString().trim();
      case "visit":
        return app.queueAdd(
                new QueueAddRequest("activity", Map.of("type", "visit", "minutes", Long.valueOf(words[1])))
                    .occurredAtMs(System.currentTimeMillis()))
            .getState()
            .value();
      case "leave":
        return shown(app.sessionBackground());
      case "unlock":
        return shown(app.sessionUnlock(new SessionUnlockRequest(Outcome.SUCCESS)));
      case "unsent":
        Counts counts = app.syncStatus().getCounts();
        return counts.getPending() + counts.getSending() + counts.getWaiting() + " "
            + counts.getParked();
      case "drain":
        app.syncNow();
        SyncCompletedEvent all = events.await(SyncCompletedEvent.class, one -> true);
        return String.valueOf(all.getIds().size());
      case "log_out":
        SessionLogoutReply left = app.sessionLogout();
        // Until the key store has erased the keys and no longer finds them.
        while (!app.sessionStatus().getOwed().isEmpty()) Thread.sleep(20);
        return left.getUnsent() + " " + shown(left.getDecision());
      default:
        throw new IllegalArgumentException(words[0]);
    }
  }

  private String shown(Decision decision) throws Exception {
    Decision settled = events.settled(decision);
    return settled.getScreen() + " " + settled.getReason();
  }
}
