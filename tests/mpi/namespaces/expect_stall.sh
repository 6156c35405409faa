#!/bin/sh
# expect_stall.sh COMMAND...: COMMAND must end with exit code 66 and name ranks of the other node. 77 is handed on.
output=$(timeout -k 2 30 "$@" 2>&1)
got=$?
echo "$output"
[ "$got" -ne 77 ] || exit 77
[ "$got" -eq 66 ] || { echo "expected exit code 66, got $got"; exit 1; }
case $output in *"rank 2"* | *"rank 3"*) ;; *) echo "expected a rank behind the cut to be named"; exit 1 ;; esac
