#!/bin/sh
# Makes the first corpus: the bodies of the recorded quirks, each with a byte in front that says how it is cut.
set -eu
cd "$(dirname "$0")"
mkdir -p corpus/answer
for case in ../tests/fixtures/llm_quirks/cases/*.json; do
    # Only what is text; the rest is in the unit tests.
    name=$(basename "$case" .json)
    python3 - "$case" > "corpus/answer/$name" <<'PY'
import base64, json, sys
out = sys.stdout.buffer
out.write(b"\x07")
for chunk in json.load(open(sys.argv[1], encoding="utf-8"))["http"]["chunks"]:
    if isinstance(chunk, str):
        out.write(chunk.encode())
    elif "b64" in chunk:
        out.write(base64.b64decode(chunk["b64"]))
    elif "repeat" in chunk:
        out.write(chunk["repeat"].encode() * min(chunk["times"], 100))
PY
done
echo "$(ls corpus/answer | wc -l) seeds"
