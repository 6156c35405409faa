#!/bin/sh
# expect_exit.sh SECONDS CODE TEXT COMMAND...: COMMAND must end within SECONDS with exit code CODE ("failure": any but 0)
# and print TEXT. If COMMAND unexpectedly exits with 77 (a skipped test), so does this script.
seconds=$1 code=$2 text=$3
shift 3
output=$(timeout -k 2 "$seconds" "$@" 2>&1)
got=$?
echo "$output"
. "$(dirname "$0")/rank_code.sh"
got=$(printf '%s\n' "$output" | rank_code "$got")
[ "$got" -ne 77 ] || [ "$code" = 77 ] || exit 77
if [ "$got" -eq 124 ]; then echo "expected an end within $seconds s"; exit 1; fi
if [ "$code" = failure ]; then [ "$got" -ne 0 ]; else [ "$got" -eq "$code" ]; fi || {
  echo "expected exit code $code, got $got"
  exit 1
}
case $output in *"$text"*) ;; *) echo "expected the output to say: $text"; exit 1 ;; esac
