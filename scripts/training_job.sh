# shellcheck shell=bash
# Shared by scripts/slurm/train.sbatch and scripts/pbs/train.pbs, which source it. A job trains until it is finished or its scheduler
# sends a warning. Then the ranks save, the job returns to the queue, and its next start continues (docs/schedulers.md).
#
# A template sets `template`, its name in messages, and calls `prepare`; then it sets the array `launch` and the function `requeue`,
# which puts the job back into the queue, and calls `train`.

: "${template:?}"

# USR1: the time limit is near. TERM: the scheduler ends the job and decides about a restart. Both may arrive before the program is
# launched.
launched='' warned='' ending='' interrupted=''
trap 'warned=yes interrupted=yes; pass_warning_on' USR1
trap 'ending=yes interrupted=yes; pass_warning_on' TERM
readonly kSaved=75          # docs/exit_codes.md
readonly kKilledByUsr1=138  # a program without a handler for USR1
readonly kWrongArguments=2
readonly kTries=3           # restarts from one place before the job ends

say() { echo "$template: $*"; }
complain() { echo "$template: $*" >&2; }
refuse() {
  complain "$*"
  exit 2
}

# prepare JOB PROGRAM [ARGUMENT...]: JOB is the job's name, equal in all its restarts. Sets `command` and `checkpoint`. The variable
# CHECKPOINT also passes the folder to the program, for programs without these options (RESUME_OPTIONS=).
prepare() {
  local options
  job=$1 program=$2
  checkpoint=${CHECKPOINT:-checkpoints/job-$job}
  status=$checkpoint/status.json
  notes=$checkpoint.restarts
  if [[ $program == *.py ]]; then
    export KERAS_BACKEND=syncline
    command=("${PYTHON:-python3}" "$program")
  else
    command=("$program")
  fi
  [[ -e $program ]] || refuse "'$program' is not there (in $PWD); build it with scripts/train, or submit from the repository"
  mkdir -p "$(dirname "$checkpoint")"
  read -ra options <<<"${RESUME_OPTIONS---checkpoint {\} --resume}"
  command+=("${@:3}" "${options[@]//\{\}/$checkpoint}")
  export CHECKPOINT=$checkpoint
  count_restarts
}

# use_mpirun THREADS [OPTION...]: sets `launch`. A rank derives its number of threads from its affinity mask. After a rank's death or a
# SIGTERM, mpirun waits five seconds instead of one between its signals to the ranks, so that they can save.
use_mpirun() {
  launch=(mpirun --map-by "slot:PE=$1" --bind-to core --mca odls_base_sigkill_timeout 5 -x CHECKPOINT "${@:2}")
  # Ranks that mpirun starts with ssh get no other variables of this script.
  [[ $program != *.py ]] || launch+=(-x KERAS_BACKEND)
  # In containers and on single-machine clusters jobs may run as root.
  ((EUID != 0)) || launch+=(--allow-run-as-root)
}

status_of() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" "$status" 2>/dev/null | head -n 1 || true; }

# Prints the position of the training: its step, or for a program without a status file its newest checkpoint.
place() {
  local step
  step=$(status_of global_step)
  if [[ -n $step ]]; then
    echo "step $step"
  elif [[ -d $checkpoint ]]; then
    # shellcheck disable=SC2012  # the newest, whatever its name
    echo "checkpoint $(ls -t "$checkpoint" | head -n 1)"
  else
    echo "the beginning"
  fi
}

# Ends the job if kTries restarts have begun at the same place, because another one is unlikely to get further.
count_restarts() {
  local here last='' starts=0 tries=0
  here=$(place)
  [[ ! -f $notes ]] || { read -r starts tries last <"$notes" || true; }
  starts=$((starts + 1))
  if [[ $here == "$last" ]]; then tries=$((tries + 1)); else tries=0; fi
  if ((tries >= kTries)); then
    rm -f "$notes"
    complain "job $job has not come further than $here in $kTries restarts and ends; look into its output, give it more" \
      "time, and submit it again with CHECKPOINT=$checkpoint"
    exit 1
  fi
  echo "$starts $tries $here" >"$notes"
  ((starts == 1)) || say "job $job, restart $((starts - 1)), from $here"
}

# mpirun and srun forward SIGUSR1 to all ranks. A SIGTERM would make them kill the ranks within seconds.
pass_warning_on() { [[ -z $launched ]] || kill -USR1 "$launched" 2>/dev/null || true; }

# Runs `launch` with `command`, then ends the script with its exit code, or kSaved if the ranks have saved.
train() {
  local code
  # In the background, because bash handles signals only after a program in the foreground has ended.
  "${launch[@]}" "${command[@]}" &
  launched=$!
  [[ -z $warned$ending ]] || pass_warning_on
  # A signal ends `wait` early; a second `wait` gives the same code.
  while
    code=0 interrupted=''
    wait "$launched" || code=$?
    [[ -n $interrupted ]]
  do :; done
  trap '' USR1 TERM
  finish "$code"
}

finish() {
  local code=$1
  ((code != 0)) || rm -f "$notes" "$checkpoint.pbs" "$checkpoint.variables"
  # If a rank was killed, mpirun returns a code of its own; a status file that is newer than this start records a save.
  if [[ $code != 0 && $status -nt $notes && $(status_of state) == saved ]]; then
    code=$kSaved
  elif ((code == kKilledByUsr1)) && [[ -n $warned ]]; then
    say "'$program' was ended by the warning; it goes on from its last checkpoint"
    code=$kSaved
  fi
  ((code != kWrongArguments)) || [[ -v RESUME_OPTIONS ]] ||
    complain "'$program' was given --checkpoint and --resume; if it does not know them, set RESUME_OPTIONS (docs/schedulers.md)"
  ((code == kSaved)) || exit "$code"
  if [[ -n $ending ]]; then
    say "job $job is ended by its scheduler at $(place); CHECKPOINT=$checkpoint goes on from there"
  elif requeue; then
    say "job $job goes back to the queue at $(place)"
  else
    complain "job $job cannot go back to the queue; submit it again with CHECKPOINT=$checkpoint"
  fi
  exit "$kSaved"
}
