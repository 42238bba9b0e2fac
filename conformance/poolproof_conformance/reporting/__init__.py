"""What a run found, for people and for CI: one HTML page, JUnit, SARIF, Markdown, and the terminal."""
