"""The wrong pool that keeps one largest entry to spare, in a process of its own."""

from poolproof_conformance.child_server import serve_standard_streams
from poolproof_conformance.faulty.choosing import SlackOfOneEntry
from poolproof_conformance.reference_adapter import ReferenceAdapter

serve_standard_streams(ReferenceAdapter(SlackOfOneEntry, "slack"))
