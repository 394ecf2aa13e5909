"""Writes the programs of README.md into files that compile. Usage: readme.py FOLDER"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"

#: What a test puts in the place of the page's addresses and secrets.
GIVEN = {
    '"https://x.supabase.co"': "url",
    '"sb_publishable_..."': "key",
    '"/var/lib/app/data"': "data",
    'Path.of("/var/lib/app/keys")': "keyFile",
    '"..."': "secret",
}

JAVA = """
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import org.holdfast.Holdfast;
import org.holdfast.KeyStore;
import org.holdfast.Runner;
import org.holdfast.Types.*;
import org.holdfast.jdk.*;

public final class ReadmeJava {
  public static final int LINES = %d;

  public static void run(
      String url, String key, String data, Path keyFile, char[] password, String secret)
      throws Exception {
    LinkedBlockingQueue<Event> queue = new LinkedBlockingQueue<>();
%s
  }
}
"""

KOTLIN = """
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.runBlocking
import org.holdfast.KeyStore
import org.holdfast.Types.*
import org.holdfast.jdk.JdkHttpSender
import org.holdfast.kotlin.AsyncHoldfast

const val README_KOTLIN_LINES = %d

fun readmeKotlin(config: Config, keys: KeyStore, secret: String): Unit = runBlocking {
%s
}
"""


def block(language: str) -> str:
    """The page's only program in a language."""
    found = re.findall(rf"```{language}\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    if len(found) != 1:
        raise ValueError(f"the page has {len(found)} programs in {language}")
    text = str(found[0])
    for shown, given in GIVEN.items():
        text = text.replace(shown, given)
    return text


def main() -> None:
    """Write both programs."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, language, frame in (
        ("ReadmeJava.java", "java", JAVA),
        ("ReadmeKotlin.kt", "kotlin", KOTLIN),
    ):
        text = block(language)
        lines = len([line for line in text.splitlines() if line.strip()])
        (folder / name).write_text(frame.strip() % (lines, text) + "\n", "utf-8")


if __name__ == "__main__":
    main()
