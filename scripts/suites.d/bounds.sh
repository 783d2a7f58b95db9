# Suites on bounds: very many entries, open files, clients; servers that are stuck. Each has a cluster of its own,
# a process for each server, so that their memory can be told.

# alone NAME COMMAND...: runs a command on a cluster of its own, in a subshell, so that it is taken down after it.
alone() {
    local name=$1
    shift
    (weft_up "$base/$name" "$base/$name.mnt" --processes >/dev/null && "$@")
}

pid_of() { # NODE, or `mount`
    local file
    [[ $1 == mount ]] || { sed -n 's/.*"pid": \([0-9]*\).*/\1/p' "$WEFT_DIR/run/$1.json" && return; }
    for file in $(grep -slF "$WEFT_MOUNT" /proc/[0-9]*/cmdline); do
        [[ $(cat "${file%cmdline}comm" 2>/dev/null) == weft ]] && echo "${file//[!0-9]/}"
    done
}

# Where the manager listens.
manager() { sed -n '/addresses/,/]/ s/.*"\(.*:.*\)".*/\1/p' "$WEFT_DIR/run/manager.json"; }

rss() { awk '/VmRSS/ { print int($2 / 1024) }' "/proc/$(pid_of "$1")/status"; }

# figures WHEN: memory and descriptors of every process.
figures() {
    local node pid line=""
    for node in mds0 oss0 mount; do
        pid=$(pid_of $node)
        line+=" $node $(rss $node) MiB $(ls "/proc/$pid/fd" | wc -l) fds"
        line+=" $(awk '/Threads/ { print $2 }' "/proc/$pid/status") threads;"
    done
    say "$1:$line"
}

# at_most NODE MIB: whether it uses no more memory than that.
at_most() {
    (($(rss "$1") <= $2)) || { say "$1 uses $(rss "$1") MiB, more than $2"; return 1; }
}

suite_many() { alone many many; }

many() {
    local d="$WEFT_MOUNT/many" n=${MANY:-1000000} start
    mkdir "$d" && figures before
    start=$SECONDS
    python3 scripts/suites.d/bounds.py create "$d" "$n" || return 1
    say "created $n in $((SECONDS - start)) s" && figures created
    start=$SECONDS
    [[ $(ls -f "$d" | wc -l) -eq $((n + 2)) && $(find "$d" -type f | sort -u | wc -l) -eq $n ]] || return 1
    say "ls -f and find in $((SECONDS - start)) s" && figures listed
    python3 scripts/suites.d/bounds.py listing "$d" "$n" >"$base/listing" || return 1
    say "$(cat "$base/listing")"
    start=$SECONDS
    rm -rf "$d" && [[ ! -e $d ]] || return 1
    say "removed in $((SECONDS - start)) s" && figures removed
    # The caches of the MDS (see `cache_inodes`) and its store's; a mount keeps none for what is not in use.
    at_most mds0 1024 && at_most mount 256
}

suite_opens() { alone opens opens; }

opens() {
    local n=${OPENS:-10000} when good
    ulimit -n $((n + 100)) && figures before
    coproc RUN { exec python3 scripts/suites.d/bounds.py opens "$WEFT_MOUNT/opens" "$n"; }
    local run=$RUN_PID out=${RUN[0]} in=${RUN[1]}
    while read -r -u "$out" when; do
        figures "$when"
        echo >&"$in"
    done
    wait "$run"
    good=$?
    figures closed
    at_most mds0 256 && at_most oss0 256 && at_most mount 256 && return $good
}

suite_sessions() { alone sessions sessions; }

# Sessions of the MDT, as the server counts them.
count_sessions() {
    curl -s "http://$(sed -n 's/.*"metrics": "\(.*\)".*/\1/p' "$WEFT_DIR/run/mds0.json")/metrics" |
        awk '/^weft_sessions/ { print int($2) }'
}

# clients HOW: many clients in one process that come, work, and go HOW.
clients() {
    local n=${SESSIONS:-1000} line
    coproc RUN { exec "$(dirname "$WEFT")/examples/sessions" "$(manager)" "$WEFT_DIR/cluster.key" "$n"; }
    local run=$RUN_PID out=${RUN[0]} in=${RUN[1]}
    read -r -u "$out" line || return 1
    say "$line" && figures "$n more sessions" && [[ $(count_sessions) -eq $((n + 1)) ]] || return 1
    if [[ $1 == die ]]; then
        kill -9 "$run"
        wait "$run"
        # The lease is ten seconds.
        for _ in $(seq 30); do
            sleep 1
            [[ $(count_sessions) -eq 1 ]] && break
        done
    else
        echo >&"$in"
        wait "$run" || return 1
    fi
    figures "all have gone ($1)" && [[ $(count_sessions) -eq 1 ]]
}

sessions() {
    nice cargo build --quiet --release -p weft --example sessions || return 1
    ulimit -n "$(ulimit -Hn)" && figures before
    clients leave && clients die && clients leave && at_most mds0 512
}
