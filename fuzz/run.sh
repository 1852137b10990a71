#!/bin/sh
# Builds the fuzz target as cargo-fuzz does and runs it: run.sh SECONDS [ARGUMENTS OF LIBFUZZER]
set -eu
seconds=${1:-600}
[ $# -gt 0 ] && shift
cd "$(dirname "$0")"
[ -d corpus/answer ] || sh seed.sh
target=$(rustc +nightly -vV | sed -n 's/^host: //p')
RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
 -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 \
 -Cdebug-assertions -Coverflow-checks --cfg fuzzing -Zsanitizer=address" \
    cargo +nightly build --release --target "$target" --bin answer
mkdir -p artifacts/answer
exec "./target/$target/release/answer" corpus/answer -dict=answer.dict -max_len=4096 -timeout=10 \
    -artifact_prefix=artifacts/answer/ -max_total_time="$seconds" -print_final_stats=1 "$@"
