package org.holdfast.kotlin

import java.nio.file.Path
import java.util.concurrent.CountDownLatch
import kotlin.concurrent.thread
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.holdfast.Backend
import org.holdfast.Holdfast
import org.holdfast.HoldfastException
import org.holdfast.PromptingKeyStore
import org.holdfast.Types.*
import org.holdfast.jdk.JdkHttpSender
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.io.TempDir

/** The coroutines: suspend functions and the flow of events. */
@Timeout(900)
class AsyncHoldfastTest {
  @TempDir lateinit var folder: Path

  private suspend fun open(): AsyncHoldfast =
    AsyncHoldfast.open(
      Backend.config(folder.resolve("data")).keystore(KeyStoreChoice(KeyStoreChoiceKind.FILE)),
      JdkHttpSender(),
    )

  private fun limited(test: suspend kotlinx.coroutines.CoroutineScope.() -> Unit) = runBlocking {
    withTimeout(800_000) { test() }
  }

  @Test
  fun `signs in, queues and hears of it`() = limited {
    val before = Holdfast.liveCount()
    open().use { app ->
      val events = mutableListOf<Event>()
      val home = CompletableDeferred<Decision>()
      val sent = CompletableDeferred<SyncCompletedEvent>()
      val following =
        launch(Dispatchers.Default) {
          app.events.collect { event ->
            events += event
            when (event) {
              is DecisionEvent -> if (event.decision.screen == Screen.HOME) home.complete(event.decision)
              is SyncCompletedEvent -> sent.complete(event)
              else -> Unit
            }
          }
        }
      assertEquals(Screen.SIGN_IN, app.sessionResume().screen)
      app.signInComplete(SignInPassword("solo@example.org", Backend.PASSWORD))
      // Kotlin knows what may be null: a screen has a route only with `home`.
      assertEquals("/mentor", home.await().route?.take(7))
      val added = app.queueAdd(
        QueueAddRequest("activity", mapOf("type" to "visit", "minutes" to 45))
          .occurredAtMs(System.currentTimeMillis()))
      assertEquals(listOf(added.id), sent.await().ids)
      following.cancelAndJoin()
    }
    // A thread that sleeps in the library leaves it a moment after the handle was closed.
    while (Holdfast.liveCount() > before) kotlinx.coroutines.delay(10)
  }

  @Test
  fun `an error is an exception`() = limited {
    open().use { app ->
      app.sessionResume()
      val error = runCatching { app.queueAdd(QueueAddRequest("activity", mapOf("type" to "visit"))) }
        .exceptionOrNull()
      assertTrue(error is HoldfastException.State)
      assertEquals(ErrorCode.SESSION_NONE, (error as HoldfastException).code)
      assertNull(error.field)
    }
  }

  @Test
  fun `a collector that is cancelled gets the event again`() = limited {
    open().use { app ->
      val first = async(Dispatchers.Default) {
        app.events.filterIsInstance<DecisionEvent>().first { it.decision.screen == Screen.HOME }
      }
      app.sessionResume()
      app.signInComplete(SignInPassword("solo@example.org", Backend.PASSWORD))
      first.await()
      app.queueAdd(QueueAddRequest("activity", mapOf("type" to "visit", "minutes" to 45))
        .occurredAtMs(System.currentTimeMillis()))
      // first() cancels the flow on the event, which is then not acknowledged.
      val once = app.events.filterIsInstance<SyncCompletedEvent>().first()
      val again = app.events.filterIsInstance<SyncCompletedEvent>().first()
      assertEquals(once, again)
    }
  }

  @Test
  fun `closing ends the flow, also from inside a collector`() = limited {
    val app = open()
    val all = async(Dispatchers.Default) { app.events.toList() }
    app.sessionResume()
    app.close()
    all.await()
    app.close()
    val error = runCatching { app.sessionStatus() }.exceptionOrNull()
    assertTrue(error != null, "a closed app answers nothing")

    val second = open()
    val inside = async(Dispatchers.Default) {
      second.events.collect { second.close() }
    }
    second.sessionResume()
    second.signInComplete(SignInPassword("solo@example.org", Backend.PASSWORD))
    inside.await()
  }

  @Test
  fun `without a collector requests are sent all the same`() = limited {
    val stored = Backend.activities("solo@example.org")
    open().use { app ->
      app.sessionResume()
      app.signInComplete(SignInPassword("solo@example.org", Backend.PASSWORD))
      while (app.sessionStatus().state.value() != "active") kotlinx.coroutines.delay(20)
      while (runCatching {
          app.queueAdd(QueueAddRequest("activity", mapOf("type" to "visit", "minutes" to 1))
            .occurredAtMs(System.currentTimeMillis()))
        }.isFailure) kotlinx.coroutines.delay(20)
      while (Backend.activities("solo@example.org") == stored) kotlinx.coroutines.delay(20)
    }
  }

  @Test
  fun `no other call waits for the prompt of an unlock`() = limited {
    val keys = PromptingKeyStore()
    val config = Backend.config(folder.resolve("data")).policy(Policy().biometric(PolicyBiometric.REQUIRED))
    AsyncHoldfast.open(config, JdkHttpSender(), keys).use { app ->
      app.sessionResume()
      app.signInComplete(SignInPassword("solo@example.org", Backend.PASSWORD))
      app.events.filterIsInstance<DecisionEvent>().first { it.decision.screen == Screen.HOME }
      app.sessionLock()
      val unlocked = async { app.sessionUnlock(SessionUnlockRequest(Outcome.SUCCESS)) }
      while (keys.prompts.get() == 0) delay(5)
      app.sessionLock()
      assertTrue(unlocked.await().screen != Screen.HOME)
      assertEquals(1, keys.withdrawn.get())
    }
  }
}
