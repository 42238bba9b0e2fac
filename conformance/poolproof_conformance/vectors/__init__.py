"""Test vectors as JSON: made from the specification, held against it and against targets, for consumers in any language."""
