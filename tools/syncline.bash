# Bash completion of the syncline command.
_syncline() {
  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W 'ls show stat diff convert verify doctor profile trace --help --version' -- "$word")
  elif [[ $command == trace && $COMP_CWORD == 2 ]]; then
    mapfile -t COMPREPLY < <(compgen -W 'merge --help' -- "$word")
  elif [[ $word == -* ]]; then
    # The options, as the command's own help lists them.
    [[ $command != trace ]] || command="trace ${COMP_WORDS[2]}"
    # shellcheck disable=SC2086
    mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" $command --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u)" -- "$word")
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -F _syncline syncline
