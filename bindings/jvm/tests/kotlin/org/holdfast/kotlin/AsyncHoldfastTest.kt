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

  @AfterEach fun heal() = Server.heal()

  private suspend fun open(): AsyncHoldfast =
    AsyncHoldfast.open(
      Server.config(folder.resolve("data")).keystore(KeyStoreChoice(KeyStoreChoiceKind.FILE)),
      JdkHttpSender(),
    )

  private fun limited(test: suspend CoroutineScope.() -> Unit) = runBlocking {
    withTimeout(800_000) { test() }
  }

  /** Collects, and does something with the first screen of this name. */
  private suspend fun AsyncHoldfast.awaits(screen: Screen): Decision =
    news.filterIsInstance<NextScreen>().first { it.screen.screen == screen }.screen

  private suspend fun AsyncHoldfast.signIn(email: String = "solo@example.org") {
    signInComplete(SignInPassword(email, Server.PASSWORD))
  }

  /** One user from the sign-in to the logout; the app is closed and opened in between. */
  @Test
  fun `the story`() = limited {
    val before = Holdfast.liveCount()
    val stored = Server.activities("mentor@example.org")
    open().use { app ->
      // Given a user who signs in and chooses one of two organisations
      app.awaits(Screen.SIGN_IN)
      app.signIn("mentor@example.org")
      app.orgSelect(OrgSelectRequest(app.awaits(Screen.SELECT_ORG).orgs.first().orgId))
      // Kotlin knows what may be null: a screen has a route only with `home`.
      assertEquals("/mentor", app.awaits(Screen.HOME).route?.take(7))
      app.news.filterIsInstance<NextSync>().first { it.sync.contactsMs != null }
      assertEquals(ErrorCode.QUEUE_UNKNOWN_KIND, runCatching {
        app.queueAdd(QueueAddRequest("none", mapOf<String, Any>()))
      }.exceptionOrNull().let { (it as HoldfastException.Invalid).code })
      // When the network goes, and a visit is queued
      Server.drop("/")
      assertEquals("pending", app.queueAdd(Server.visit(45)).state.value())
      app.holdfast.cancel()
    }
    open().use { app ->
      // Then the next start needs no sign-in, and the search no network
      assertEquals(Screen.HOME, app.screen.value?.screen)
      assertTrue(app.contactSearch(ContactSearchRequest("dag")).contacts.isNotEmpty())
      assertEquals(stored, Server.activities("mentor@example.org"))
      // And with the network it arrives
      Server.heal()
      app.syncNow()
      app.news.filterIsInstance<NextSync>().first { it.sync.ids.size == 1 }
      assertEquals(stored + 1, Server.activities("mentor@example.org"))
      assertEquals(0, app.sessionLogout().unsent)
      assertEquals("signed_out", app.awaits(Screen.SIGN_IN).reason.value())
      assertEquals(Screen.SIGN_IN, app.screen.value?.screen)
    }
    assertEquals(before, Holdfast.liveCount())
  }

  @Test
  fun `a collector that is cancelled leaves the next thing to the next one`() = limited {
    open().use { app ->
      app.awaits(Screen.SIGN_IN)
      // Undispatched: when launch returns, this one is the collector.
      val cancelled =
        launch(start = CoroutineStart.UNDISPATCHED) {
          app.news.collect { error("nothing has come") }
        }
      assertTrue(runCatching { app.news.first() }.exceptionOrNull() is IllegalStateException)
      cancelled.cancelAndJoin()
      app.signIn()
      app.awaits(Screen.HOME)
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
