#!/bin/sh
# expect_lines.sh SECONDS CODE [COUNT TEXT]... -- COMMAND...: COMMAND must end within SECONDS with exit code CODE ("failure":
# any but 0) and leave no process, and each TEXT must be in COUNT lines of its output: a number, "some" (at least one) or
# "atmost N". If COMMAND exits with 77 (a skipped test), so does this script.
seconds=$1 code=$2
shift 2
output=$(mktemp) expected=$(mktemp)
trap 'rm -f "$output" "$expected"' EXIT
while [ "$1" != -- ]; do
  printf '%s\t%s\n' "$1" "$2" >>"$expected"
  shift 2
done
shift
export SYNCLINE_TEST_JOB="expect_lines $$"
timeout -k 2 "$seconds" "$@" >"$output" 2>&1
got=$?
cat "$output"
. "$(dirname "$0")/rank_code.sh"
got=$(rank_code "$got" <"$output")
[ "$got" -ne 77 ] || exit 77
[ "$got" -ne 124 ] || { echo "expected an end within $seconds s"; exit 1; }
if [ "$code" = failure ]; then [ "$got" -ne 0 ]; else [ "$got" -eq "$code" ]; fi || {
  echo "expected exit code $code, got $got"
  exit 1
}
while IFS='	' read -r count text; do
  found=$(grep -cF -e "$text" "$output")
  case $count in
    some) [ "$found" -gt 0 ] ;;
    atmost*) [ "$found" -le "${count#atmost }" ] ;;
    *) [ "$found" -eq "$count" ] ;;
  esac || { echo "expected in $count lines, found in $found: $text"; exit 1; }
done <"$expected"
# The environment marks the processes of COMMAND. mpirun ends before the ranks that it kills.
left() { env -u SYNCLINE_TEST_JOB grep -lzsxF "SYNCLINE_TEST_JOB=$SYNCLINE_TEST_JOB" /proc/[0-9]*/environ; }
for _ in 1 2 3 4 5 6 7 8 9 10; do
  left=$(left)
  [ -n "$left" ] || exit 0
  sleep 0.2
done
echo "still there: $left"
exit 1
