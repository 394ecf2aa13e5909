"""Calls that must fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from holdfast import HoldfastError, Library
from holdfast.keystore import KeyStoreStruct

from . import contract


def error_of(call: Callable[..., object], *arguments: Any) -> HoldfastError:  # noqa: ANN401
    """The error of a call that must fail."""
    with pytest.raises(HoldfastError) as caught:
        call(*arguments)
    return caught.value


def error_of_open(
    library: Library, config: Mapping[str, Any], store: KeyStoreStruct | None = None
) -> dict[str, Any]:
    """The error of an open() that must fail, and leave no handle."""
    before = library.live()
    handle, (status, reply) = library.open(json.dumps(config).encode(), store)
    if handle:
        library.close(handle)
    assert (handle, status == 0) == (0, False), reply
    answer = json.loads(reply or b"")
    contract.judge_reply("open", status, answer)
    assert library.live() == before
    error: dict[str, Any] = answer["error"]
    return error
