# shellcheck shell=bash
# What scripts/slurm/train.sbatch and scripts/pbs/train.pbs share; they source it. A job trains until it is done or its
# scheduler warns it; then the ranks save, and the job goes back to the queue and on from there (docs/schedulers.md).
#
# A template sets `template`, its name for messages, and calls `prepare`; then it sets the array `launch` and the function
# `requeue`, which puts the job back to the queue, and calls `train`.

: "${template:?}"

# USR1: the job's time is nearly over. TERM: the scheduler ends the job, and knows whether it begins again. Both may come
# before there is a program to be told.
launched='' warned='' ending='' interrupted=''
trap 'warned=yes interrupted=yes; pass_warning_on' USR1
trap 'ending=yes interrupted=yes; pass_warning_on' TERM
readonly kSaved=75          # docs/exit_codes.md
readonly kKilledByUsr1=138  # a program that does not know the warning
readonly kWrongArguments=2
readonly kTries=3           # restarts from one place before the job gives up

say() { echo "$template: $*"; }
complain() { echo "$template: $*" >&2; }
refuse() {
  complain "$*"
  exit 2
}

# prepare JOB PROGRAM [ARGUMENT...]: JOB is a name that restarts of the job keep. Sets `command` and `checkpoint`. A program
# finds the folder in the variable CHECKPOINT too, so that one without these options can do without (RESUME_OPTIONS=).
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

# use_mpirun THREADS [OPTION...]: sets `launch`. A rank takes its threads from its affinity mask. Five seconds instead of one
# lie between mpirun's signals to the ranks when one has died or mpirun itself is asked to end: time to save.
use_mpirun() {
  launch=(mpirun --map-by "slot:PE=$1" --bind-to core --mca odls_base_sigkill_timeout 5 -x CHECKPOINT "${@:2}")
  # Where it starts ranks with ssh they get no other variables of this script.
  [[ $program != *.py ]] || launch+=(-x KERAS_BACKEND)
  # In containers, and on a cluster of one's own machine, jobs may be root's.
  ((EUID != 0)) || launch+=(--allow-run-as-root)
}

status_of() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" "$status" 2>/dev/null | head -n 1 || true; }

# Where the training stands: its step, or for a program that writes no status file its newest checkpoint.
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

# Ends the job if it has started from the same place too often: nothing suggests that another start would be different.
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

# mpirun and srun pass this signal on to all ranks; theirs of SIGTERM ends them within seconds.
pass_warning_on() { [[ -z $launched ]] || kill -USR1 "$launched" 2>/dev/null || true; }

# Runs `launch` with `command`, and ends with its exit code.
train() {
  local code
  # In the background: bash handles a signal only after a program in the foreground has ended.
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
  # mpirun has a code of its own where a rank was killed; what the ranks saved stands in the status file of this run.
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
