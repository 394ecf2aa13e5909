package org.holdfast.kotlin

import java.nio.file.Path
import kotlinx.coroutines.*
import kotlinx.coroutines.flow.*
import org.holdfast.*
import org.holdfast.Types.*
import org.holdfast.jdk.JdkHttpSender
import org.junit.jupiter.api.*
import org.junit.jupiter.api.Assertions.*
import org.junit.jupiter.api.io.TempDir

/** The coroutines: suspend functions and the flow of news. */
@Timeout(900)
class AsyncHoldfastTest {
  @TempDir lateinit var folder: Path

  private suspend fun open(): AsyncHoldfast =
    AsyncHoldfast.open(Server.config(folder.resolve("data")), JdkHttpSender())

  private fun limited(test: suspend CoroutineScope.() -> Unit) = runBlocking {
    withTimeout(800_000) { test() }
  }

  @Test
  fun `the next screen but wait is settled, and the rest is kept`() = limited {
    open().use { app ->
      assertEquals(Screen.SIGN_IN, app.settled()?.screen)
      app.signInComplete(Server.SOLO)
      assertEquals(Screen.HOME, app.settled()?.screen)
      // Kotlin knows what may be null: a screen has a route only with `home`.
      assertEquals("/mentor", app.screen.value?.route?.take(7))
      assertEquals(ErrorCode.QUEUE_UNKNOWN_KIND, runCatching {
        app.queueAdd(QueueAddRequest("none", mapOf<String, Any>()))
      }.exceptionOrNull().let { (it as HoldfastException.Invalid).code })
      val locked = async(start = CoroutineStart.UNDISPATCHED) { app.settled() }
      val id = app.queueAdd(Server.visit(100_000)).id // the server refuses it
      while (app.syncStatus().counts.parked == 0L) delay(20)
      app.sessionLock()
      assertEquals(Screen.SIGN_IN, locked.await()?.screen)
      app.news.filterIsInstance<NextNotice>().first { (it.notice as? ItemParkedNotice)?.id == id }
    }
  }

  @Test
  fun `a collector that is cancelled leaves the next thing to the next one`() = limited {
    open().use { app ->
      assertEquals(Screen.SIGN_IN, app.settled()?.screen)
      // Undispatched: when launch returns, this one is the collector.
      val cancelled =
        launch(start = CoroutineStart.UNDISPATCHED) {
          app.news.collect { error("nothing has come") }
        }
      assertTrue(runCatching { app.news.first() }.exceptionOrNull() is IllegalStateException)
      cancelled.cancelAndJoin()
      app.signInComplete(Server.SOLO)
      assertEquals(Screen.HOME, app.settled()?.screen)
    }
  }

  @Test
  fun `closing ends the flow, also from inside a collector`() = limited {
    val app = open()
    val all = async(Dispatchers.Default) { app.news.toList() }
    app.close()
    all.await()
    app.close()
    assertTrue(runCatching { app.sessionStatus() }.exceptionOrNull() is HoldfastException.Closed)
    val second = open()
    second.news.collect { second.close() }
  }
}
