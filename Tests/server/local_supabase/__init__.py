"""A local Supabase project for tests: PostgreSQL behind auth and data services."""

from .control import Control, ControlError
from .launcher import LocalSupabase, StartFailed

__all__ = ["Control", "ControlError", "LocalSupabase", "StartFailed"]
