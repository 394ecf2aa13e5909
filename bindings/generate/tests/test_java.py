"""What is special in the Java and Kotlin that is generated."""

from __future__ import annotations

import re

import java
import pytest
from model import SCHEMA, Codes, Definition, Model

MODEL = Model.load(SCHEMA)
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


def test_no_type_has_the_name_of_a_flow_of_the_platform() -> None:
    assert "SignInFlow" in TYPES
    assert not any(re.search(r"\bFlow\b", text) for text in FILES.values())


def test_kotlin_is_told_what_may_be_null() -> None:
    decision = text("Decision")
    assert "@Nullable\n  public String getRoute()" in decision
    assert "@NotNull\n  public Screen getScreen()" in decision
    assert "\n  public boolean getCanUnlock()" in decision
    assert "@Nullable\n  public Long getWakeInMs()" in text("NextWake")


def test_a_code_named_unknown_is_an_error() -> None:
    """The constant UNKNOWN stands for the codes of later versions."""
    codes = Definition("Broken", "", Codes(("known", "unknown"), open=True))
    with pytest.raises(ValueError, match="Broken has the code unknown"):
        java.Types(MODEL).nested(codes)


def test_comments_cannot_break_out() -> None:
    assert java.javadoc("a */ b <c> & `d`") == "/** a *&#47; b &lt;c&gt; &amp; {@code d} */\n"
    assert java.javadoc("One.", 2, ["<li>a", "@param c d"]) == (
        "  /** One.\n   * <li>a\n   * @param c d */\n"
    )
    assert "\\u" not in java.javadoc("\\u002a/")


def test_each_operation_is_a_function_in_both_languages() -> None:
    operations = FILES[f"{java.ROOT}/Operations.java"]
    suspending = FILES[java.KOTLIN]
    for one in MODEL.operations:
        assert f'"{one.name}"' in operations
    assert "  public void sessionResume() {" in operations
    assert "suspend fun sessionResume(): Unit = on { sessionResume() }" in suspending
    assert suspending.count("suspend fun ") == len(MODEL.operations) + 1  # and `on`
    assert "suspend fun sessionLogout(request: SessionLogoutRequest = SessionLogoutRequest())" in (
        suspending
    )
