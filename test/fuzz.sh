#!/usr/bin/env bash
# Runs every fuzz target of all modules for the given time: fuzz.sh [TIME]
set -eu
cd "$(dirname "$0")/.."
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -ho '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/^func //' | while read -r target; do
		echo "== $dir $target"
		(cd "$dir" && go test . -run '^$' -fuzz "^$target\$" -fuzztime "${1:-15s}" </dev/null)
	done
done
