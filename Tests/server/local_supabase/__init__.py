"""A local stand-in for a Supabase project: real PostgreSQL, with auth and data services in front."""

from .control import Control, ControlError
from .launcher import LocalSupabase, StartFailed

__all__ = ["Control", "ControlError", "LocalSupabase", "StartFailed"]
