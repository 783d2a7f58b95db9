# A server that is stuck: stopped by a signal, so that its connections stay and nothing answers.

suite_stuck() { alone stuck stuck; }

# timed COMMAND...: its time in milliseconds.
timed() {
    local start
    start=$(date +%s%N)
    "$@" >/dev/null || return 1
    echo $((($(date +%s%N) - start) / 1000000))
}

small_files() { # DIRECTORY: makes it with 200 files, and reads them
    local i
    mkdir "$1" || return 1
    for i in $(seq 200); do
        echo "$i" >"$1/$i" && read -r <"$1/$i" || return 1
    done
}

said() { # WORDS...: whether the mount's log says so about the target
    grep -F "$1" "$WEFT_DIR/log/mount.log" | grep -qF "$2"
}

# waits_for NODE TARGET COMMAND...: while the server is stopped the command waits, others see who is to blame; a
# signal ends the wait, and so does the server's return.
waits_for() {
    local node=$1 target=$2 pid waiting doomed
    shift 2
    pid=$(pid_of "$node")
    kill -STOP "$pid"
    "$@" first &
    waiting=$!
    "$@" second &
    doomed=$!
    sleep 8
    said "target does not answer" "$target" || { echo "the mount's log says nothing of $target"; kill -CONT "$pid"; return 1; }
    "$WEFT" status --manager "$(manager)" --key "$WEFT_DIR/cluster.key" >"$base/stuck.status"
    [[ $? -eq 4 ]] && grep -q "$node does not answer" "$base/stuck.status" &&
        "$WEFT" target list --state down --manager "$(manager)" --key "$WEFT_DIR/cluster.key" | grep -q "$target" || { cat "$base/stuck.status"; kill -CONT "$pid"; return 1; }
    kill -0 "$waiting" && kill -TERM "$doomed" && timeout 5 tail --pid="$doomed" -f /dev/null ||
        { echo "a signal does not end the wait"; kill -CONT "$pid"; return 1; }
    "${while_stopped[@]}" || { kill -CONT "$pid"; return 1; }
    figures "$node stopped"
    kill -CONT "$pid"
    wait "$waiting" && said "target answers again" "$target"
}

write_striped() { exec dd if=/dev/urandom of="$WEFT_MOUNT/striped/$1" bs=1M count=32 status=none; }
make_directory() { exec mkdir "$WEFT_MOUNT/directory.$1"; }

others_go_on() {
    local before=$quick now
    now=$(timed small_files "$WEFT_MOUNT/others/beside") || return 1
    say "200 other files: $before ms before, $now ms beside a stuck OSS"
    ((now < before * 3 + 500))
}

soft_mount_gives_up() {
    local soft="$base/soft.mnt" took
    mkdir -p "$soft" && "$WEFT" mount "$(manager)" "$soft" \
        -o "soft,timeo=3s,key=$WEFT_DIR/cluster.key,log=$base/soft.log" || return 1
    kill -STOP "$(pid_of oss1)"
    took=$(SECONDS=0; dd if="$soft/striped/first" of=/dev/null bs=1M iflag=direct status=none; echo $SECONDS)
    kill -CONT "$(pid_of oss1)"
    fusermount3 -u "$soft"
    say "a soft mount of 3 s gave up after $took s"
    ((took >= 3 && took <= 8))
}

stuck() {
    local quick while_stopped
    mkdir "$WEFT_MOUNT/others" "$WEFT_MOUNT/striped" && "$WEFT" setstripe -c 1 -i 0 "$WEFT_MOUNT/others" &&
        "$WEFT" setstripe -c -1 "$WEFT_MOUNT/striped" || return 1
    quick=$(timed small_files "$WEFT_MOUNT/others/before") && figures before
    while_stopped=(others_go_on)
    waits_for oss1 OST0001 write_striped || return 1
    while_stopped=(true)
    waits_for mds0 MDT0000 make_directory || return 1
    soft_mount_gives_up || return 1
    [[ $(stat -c %s "$WEFT_MOUNT/striped/first") -eq $((32 << 20)) ]] && small_files "$WEFT_MOUNT/others/after" &&
        at_most mount 256 && at_most oss1 256 && at_most mds0 256
}
