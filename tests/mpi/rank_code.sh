# Sourced. `rank_code STATUS` reads a command's output and prints its exit code: STATUS, but the code of the rank that ended
# the job if mpiexec itself crashed afterwards. Open MPI 4.1.4 with PMIx 4.2.2 now and then does, in PMIx_server_finalize.
rank_code() {
  of_command=$(cat)
  reported=
  case $1,$of_command in
    139,*PMIx_server_finalize*)
      reported=$(printf '%s\n' "$of_command" |
        sed -n 's/^ *Exit code: *\([0-9]*\)$/\1/p; s/^with errorcode \([0-9]*\)\.$/\1/p' | head -n 1)
      ;;
  esac
  echo "${reported:-$1}"
}
