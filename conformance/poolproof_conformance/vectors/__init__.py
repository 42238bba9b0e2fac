"""Test vectors as JSON: made from the specification, for consumers in any language; held against it and targets."""
