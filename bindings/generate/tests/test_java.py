"""What is special in the Java and Kotlin that is generated."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bindings" / "generate"))

import java  # noqa: E402
import kotlin  # noqa: E402
from java_text import javadoc  # noqa: E402
from model import Codes, Definition, Model  # noqa: E402

MODEL = Model.load(ROOT / "include" / "holdfast.schema.json")
FILES = java.files(MODEL)


TYPES: dict[str, str] = dict(
    re.findall(
        r"^  public (?:static final class|interface|enum) (\w+)(.*?^  }$)",
        FILES[f"{java.ROOT}/Types.java"],
        re.MULTILINE | re.DOTALL,
    )
)


def text(name: str) -> str:
    """A generated class, as if it stood alone."""
    return TYPES[name].replace("\n  ", "\n")


def test_scalars_have_no_class_of_their_own() -> None:
    assert not {"Uuid", "Instant", "Count", "Payload", "Headers"} & TYPES.keys()
    assert {"Decision", "Screen", "Notice", "SignInCompleteRequest"} <= TYPES.keys()


def test_no_type_has_the_name_of_a_flow_of_the_platform() -> None:
    assert "SignInFlow" in TYPES
    assert not any(re.search(r"\bFlow\b", text) for text in FILES.values())


def test_kotlin_is_told_what_may_be_null() -> None:
    decision = text("Decision")
    assert "@Nullable\n  public String getRoute()" in decision
    assert "@NotNull\n  public Screen getScreen()" in decision
    assert "\n  public boolean getCanUnlock()" in decision
    assert "@Nullable\n  public Long getWakeInMs()" in text("NextWake")


def test_only_fields_that_may_be_null_are_sent_as_null() -> None:
    request = text("QueueAddRequest")
    assert 'put("org_id", orgId)' in request
    assert 'set("occurred_at_ms", occurredAtMs)' in request


def test_a_closed_union_is_taken_and_an_open_one_is_read() -> None:
    assert text("SignInCompleteRequest").startswith(" extends Request {}\n")
    assert "return Unknown.of(json);" in text("SignInBeginReply")
    assert "return OtherNotice.of(json);" in text("Notice")
    # A null says what it is, too.
    assert 'if (json.containsKey("wake_in_ms")) return NextWake.of(json);' in text("NextReply")


def test_personal_and_secret_texts_are_not_printed() -> None:
    request = text("HttpRequest").split("void describe(StringBuilder text)")[1]
    assert "purpose" in request
    assert not any(field in request for field in ("url", "headers", "body"))
    assert 'describe(text, "screen", screen);' in text("NextScreen")


def test_a_code_named_unknown_is_an_error() -> None:
    """The constant UNKNOWN stands for the codes of later versions."""
    codes = Definition("Broken", "", Codes(("known", "unknown"), open=True))
    with pytest.raises(ValueError, match="Broken has the code unknown"):
        java.Types(MODEL).nested(codes)


def test_comments_cannot_break_out() -> None:
    assert javadoc("a */ b <c> & `d`") == "/** a *&#47; b &lt;c&gt; &amp; {@code d} */\n"
    assert javadoc("One.\n\n- a: b\n- c") == (
        "/**\n * One.\n *\n * <ul>\n *   <li>a: b\n *   <li>c\n * </ul>\n */\n"
    )
    assert "\\u" not in javadoc("\\u002a/")


def test_each_operation_is_a_function_in_both_languages() -> None:
    operations = FILES[f"{java.ROOT}/Operations.java"]
    suspending = kotlin.files(MODEL)[kotlin.FILE]
    for one in MODEL.operations:
        assert f'"{one.name}"' in operations
    assert "  public void sessionResume() {" in operations
    assert "suspend fun sessionResume(): Unit = on { sessionResume() }" in suspending
    assert suspending.count("suspend fun ") == len(MODEL.operations) + 1  # and `on`
    assert "suspend fun sessionLogout(request: SessionLogoutRequest = SessionLogoutRequest())" in (
        suspending
    )
