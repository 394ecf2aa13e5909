// An AAR for Android 7 and later: Java, Kotlin and the natives. Written, and not run in this project, which has neither
// Gradle's plugin nor an Android SDK: `make test-jvm` compiles the sources against declarations of Android's classes.
plugins {
  id("com.android.library") version "8.7.3"
  id("org.jetbrains.kotlin.android") version "2.1.0"
}

// The folder of build.sh: jniLibs/ABI/libholdfast.so.
val natives = providers.gradleProperty("holdfast.natives").orElse("$projectDir/../../build/android")

android {
  namespace = "org.holdfast.android"
  compileSdk = 35

  defaultConfig {
    minSdk = 24
    consumerProguardFiles("consumer-rules.pro")
    ndk { abiFilters += listOf("arm64-v8a", "x86_64") }
    externalNativeBuild {
      cmake { arguments += "-DHOLDFAST_NATIVES=${natives.get()}" }
    }
  }

  externalNativeBuild { cmake { path = file("CMakeLists.txt") } }

  sourceSets["main"].java.srcDirs("src/main/java", "../jvm/java", "../jvm/generated/java", "../jvm/okhttp")
  sourceSets["main"].kotlin.srcDirs("../jvm/kotlin", "../jvm/generated/kotlin")

  compileOptions {
    sourceCompatibility = JavaVersion.VERSION_1_8
    targetCompatibility = JavaVersion.VERSION_1_8
  }
  kotlinOptions { jvmTarget = "1.8" }
}

dependencies {
  api("androidx.biometric:biometric:1.1.0")
  api("androidx.lifecycle:lifecycle-process:2.8.7")
  api("androidx.work:work-runtime:2.9.1")
  api("com.squareup.okhttp3:okhttp:4.12.0")
  api("org.jetbrains.kotlinx:kotlinx-coroutines-android:1.9.0")
  implementation("com.google.code.gson:gson:2.11.0")
  compileOnly("org.jetbrains:annotations:26.0.1")
}
