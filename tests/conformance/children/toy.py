"""A correct target that refuses everything, in plain JSON: shares no code with poolproof.

An adapter in any language looks like this: read a line, answer a line, repeat the number.
"""

import json
import sys


def empty_state(geometry):
    """The state of a pool that holds nothing."""
    usable = {}
    for member in geometry["members"]:
        space = "state" if member["role"] == "state" else "full"
        usable.setdefault(space, []).append(range(member["first_page"], member["page_count"]))
    ids = {space: list(max(ranges, key=len)) for space, ranges in usable.items()}
    return {
        "geometry": geometry,
        "members": [{} for _ in geometry["members"]],
        "free_token_ids": ids.get("full", []),
        "free_state_ids": ids.get("state", []),
    }


def answer(request, geometry):
    """The fields of one answer, without its number."""
    kind = request["request"]
    refused = {"type": "refused", "error": "ToyError", "message": "this toy refuses everything"}
    if kind == "describe":
        return {"protocol": 1, "description": {"target": "toy", "cannot": ["payloads", "free_pages", "work"]}}
    if kind == "build":
        return {"built": True}
    if kind == "apply":
        return {"outcome": refused}
    if kind == "step":
        return {"outcome": refused, "state": empty_state(geometry)}
    if kind == "observe":
        return {"state": empty_state(geometry)}
    return {}


def main():
    """Answer until the requests end."""
    geometry = None
    for line in sys.stdin:
        request = json.loads(line)
        geometry = request.get("geometry", geometry)
        print(json.dumps({"seq": request["seq"], **answer(request, geometry)}), flush=True)


if __name__ == "__main__":
    main()
