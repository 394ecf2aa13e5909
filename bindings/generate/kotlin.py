"""Kotlin: the operations as suspend functions, in `AsyncOperations.kt`.

The types are Java's: their annotations tell Kotlin what may be null.
"""

from __future__ import annotations

from model import NOTICE, Model, Operation, camel

FILE = "bindings/jvm/generated/kotlin/org/holdfast/kotlin/AsyncOperations.kt"


def files(model: Model) -> dict[str, str]:
    """The operations."""
    functions = "".join(function(one) for one in model.operations)
    return {
        FILE: f"{NOTICE}package org.holdfast.kotlin\n\nimport org.holdfast.Holdfast\n"
        "import org.holdfast.Types.*\n\n"
        "/** The operations of [AsyncHoldfast]. They throw HoldfastException. */\n"
        "abstract class AsyncOperations internal constructor() {\n"
        "  /** Makes a call on a thread that may block. */\n"
        "  internal abstract suspend fun <Reply> on(call: Holdfast.() -> Reply): Reply\n"
        f"{functions}}}\n"
    }


def function(one: Operation) -> str:
    """The function of an operation."""
    name, reply = camel(one.name), "Unit" if one.reply == "EmptyReply" else one.reply
    default = f" = {one.request}()" if one.optional else ""
    parameter = "" if one.request == "Empty" else f"request: {one.request}{default}"
    given = "request" if parameter else ""
    about = one.about.replace("*/", "*&#47;").replace("[", "\\[")
    head = f"\n  /** {about} */\n  suspend fun {name}({parameter}): {reply}"
    return f"{head} = on {{ {name}({given}) }}\n"
