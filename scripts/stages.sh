# Shared by demo.sh, train_nano.sh and score_nano.sh: work in stages that are not done twice. Not a program: source it, from the project's
# folder, with `program` (its name, for messages), and before the first stage `out`, `bin` and `num_stages`.

# Threads that wait spin for a moment only: for ever, the default, makes training several times slower on a machine that does other work
# as well; not at all (OMP_WAIT_POLICY=passive) makes it a fifth slower on one that does not.
export GOMP_SPINCOUNT=${GOMP_SPINCOUNT:-10000}

refuse() { printf '%s: %s\n' "$program" "$*" >&2; exit 2; }
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }
need_value() { [ $# -ge 2 ] && [ -n "$2" ] || refuse "$1 needs a value; see scripts/$program.sh --help"; }

bold='' dim='' red='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' plain=$'\e[0m'; fi
say() { printf '%s\n' "$*"; }
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

stage_name='' stage_log='' stage_number=0
on_exit() {
  local status=$?
  [ "$status" != 0 ] && [ -n "$stage_name" ] || return 0
  if [ "$status" = 85 ]; then
    printf '\nStopped, and saved. The same command goes on from there.\n' >&2
    return 0
  fi
  local place="$stage_log"
  [ "$stage_name" = training ] && [ -e "$out/run/log.txt" ] && place="$out/run/log.txt"
  [ -s "$place" ] && place="; its messages: $place" || place=''
  printf '%s%s: the stage "%s" failed with exit code %s%s%s\n' "$red" "$program" "$stage_name" "$status" "$place" "$plain" >&2
}
trap on_exit EXIT

# A digest of literal values and, written as @PATH, of the contents of files and folders.
fingerprint() {
  local item
  for item in "$@"; do
    if [[ $item == @* ]]; then
      find "${item#@}" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
    else
      printf '%s\n' "$item"
    fi
  done | sha256sum | cut -d' ' -f1
}

# stage NAME RESULT "what it does" "how long" FUNCTION INPUT...: runs FUNCTION, unless RESULT was made from the same inputs.
stage() {
  local result=$out/$2 what=$3 time=$4 action=$5 key started=$SECONDS
  stage_name=$1 stage_log=$out/logs/$1.log stage_number=$((stage_number + 1))
  shift 5
  printf '\n%s%d/%d %s%s\n' "$bold" "$stage_number" "$num_stages" "$what" "$plain"
  key=$(fingerprint "$(declare -f "$action")" "$@")
  if [ -e "$result" ] && [ "$(cat "$out/.done/$stage_name" 2>/dev/null)" = "$key" ]; then
    say "    done before with the same inputs: reused"
  else
    say "    $time"
    rm -f "$out/.done/$stage_name" "$stage_log"
    "$action"
    printf '%s\n' "$key" > "$out/.done/$stage_name"
    say "    took $(clock $((SECONDS - started)))"
  fi
  stage_name=''
}

# Runs a command and shows it. What it says on stderr goes to the terminal, where it can draw a bar; without one, to the stage's log as well.
show=yes
show_and_run() {
  [ "$show" = no ] || printf '    %s$ %s%s\n' "$dim" "${*/#"$bin/"/}" "$plain" >&2
  if [ -t 2 ]; then "$@"; else "$@" 2> >(tee -a "$stage_log" >&2); fi
}
tool() { local name=$1; shift; show_and_run "$bin/$name" "$@"; }

# N lines of a file, evenly taken; all when there are fewer.
some_lines() {  # N FILE
  awk -v n="$1" -v total="$(wc -l < "$2")" 'total <= n || int(NR * n / total) > int((NR - 1) * n / total)' "$2"
}

# What sets a configuration that looks into runs/... by itself to the data in $out.
own_data() {
  local here; here=$(realpath "$out")
  settings+=(--set "data.train=$here/train.h5" --set "data.valid=$here/valid.h5" --set "data.tokenizer=$here/tokenizer"
             --set "latents.path=$here/table")
}

# The text of the models of data/models.
nano_text() {  # nano-de-en|nano-verses
  local -a make=(scripts/nano_data.py)
  [ "$1" = nano-de-en ] || make=(scripts/demo_data.py verses)
  show_and_run python3 "${make[@]}" --out "$out/text" >&2
}

# The tools: those in $bin, or, when that is empty, those that it builds (the first stage).
tools() {  # NAME...
  if [ -z "$bin" ]; then
    stage_name=set-up stage_log=$out/logs/set-up.log stage_number=1
    printf '\n%s1/%d Set-up: what is missing is installed, the tools are built%s\n' "$bold" "$num_stages" "$plain"
    say "    seconds when all is there; on a bare machine about 3 to 6 minutes to install and 5 to 8 to build"
    scripts/setup.sh
    [ -e build/default/build.ninja ] || cmake --preset default > "$stage_log"
    cmake --build build/default -j"$(nproc)" --target "$@"
    stage_name='' bin=$PWD/build/default/bin
  fi
  local tool
  for tool in "$@"; do
    [ -x "$bin/$tool" ] || refuse "$bin/$tool is not there"
  done
}
