"""From a trace to a stand-alone regression test: for an adapter under pytest, or in released SGLang's own API."""
