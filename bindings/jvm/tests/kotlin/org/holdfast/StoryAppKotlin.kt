package org.holdfast

import java.nio.file.Path
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import org.holdfast.Types.*
import org.holdfast.jdk.JdkHttpSender
import org.holdfast.kotlin.AsyncHoldfast

/**
 * The app of the story with coroutines: as StoryApp, with the same commands.
 *
 * Usage: StoryAppKotlinKt FOLDER
 */
fun main(given: Array<String>): Unit = runBlocking {
  val folder = Path.of(given[0])
  val config =
    Backend.config(folder.resolve("data"))
      .policy(
        Policy()
          .biometric(PolicyBiometric.REQUIRED)
          .lockOnBackground(PolicyLockOnBackground.AT_ONCE)
      )
  AsyncHoldfast.open(config, JdkHttpSender(), StoryKeyStore(folder)).use { holdfast ->
    val app = StoryAppKotlin(holdfast)
    val following = launch { app.follow() }
    while (true) {
      val line = withContext(Dispatchers.IO) { readLine() } ?: break
      println("> " + app.done(line.split(" ")))
    }
    following.cancelAndJoin()
  }
}

private class StoryAppKotlin(private val app: AsyncHoldfast) {
  private val decisions = Channel<Decision>(Channel.UNLIMITED)
  private val synced = Channel<SyncCompletedEvent>(Channel.UNLIMITED)

  suspend fun follow() {
    app.events.collect { event ->
      when (event) {
        is DecisionEvent -> decisions.send(event.decision)
        is SyncCompletedEvent -> synced.send(event)
        else -> Unit
      }
    }
  }

  suspend fun done(words: List<String>): String =
    when (words[0]) {
      "start" -> shown(app.sessionResume())
      "sign_in" -> shown(app.signInComplete(SignInPassword(words[1], Backend.PASSWORD)))
      "choose" -> shown(app.orgSelect(OrgSelectRequest(words[1])))
      "orgs" -> app.orgList().orgs.joinToString(" ") { it.orgId }
      "visit" ->
        app
          .queueAdd(
            QueueAddRequest("activity", mapOf("type" to "visit", "minutes" to words[1].toLong()))
              .occurredAtMs(System.currentTimeMillis())
          )
          .state
          .value()
      "leave" -> shown(app.sessionBackground())
      "unlock" -> shown(app.sessionUnlock(SessionUnlockRequest(Outcome.SUCCESS)))
      "unsent" -> app.syncStatus().counts.run { "${pending + sending + waiting} $parked" }
      "drain" -> {
        app.syncNow()
        synced.receive().ids.size.toString()
      }
      "log_out" -> {
        val left = app.sessionLogout()
        // Until the key store has erased the keys and no longer finds them.
        while (app.sessionStatus().owed.isNotEmpty()) delay(20)
        "${left.unsent} ${shown(left.decision)}"
      }
      else -> throw IllegalArgumentException(words[0])
    }

  private suspend fun shown(decision: Decision): String {
    var settled = decision
    while (settled.screen == Screen.WAIT) {
      val later = decisions.receive()
      if (later.number > settled.number) settled = later
    }
    return "${settled.screen} ${settled.reason}"
  }
}
