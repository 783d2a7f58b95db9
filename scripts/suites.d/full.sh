# Full disks: targets on small file systems of different size, served as `weft server --config` does.

suite_full() { (
    local d="$base/full" disk
    trap 'full_down' EXIT
    mkdir -p "$d/mnt" && cd "$d" || return 1
    # An MDT keeps 256 MiB back for removals (and has 70 MiB of log from the start), an OST 64 MiB.
    for disk in mdt0:512 ost0:160 ost1:260 ost2:420; do
        mkdir "${disk%:*}" && truncate -s "${disk#*:}M" "${disk%:*}.img" && mkfs.ext4 -q -m 0 "${disk%:*}.img" &&
            mount -o loop "${disk%:*}.img" "${disk%:*}" || return 1
    done
    full_up && data_disks_full && metadata_disk_full
); }

full_up() {
    local cluster port=$((20000 + RANDOM % 10000))
    cluster=$("$WEFT" cluster init --dir "$d/root" | grep -o '[0-9a-f]\{8\}-[0-9a-f-]\{27\}' | head -1)
    WEFT_MANAGER=127.0.0.1:$port
    export WEFT_MANAGER
    {
        printf 'node = "full"\nlisten = ["%s"]\nkey = "%s"\ncluster = "%s"\n' "$WEFT_MANAGER" "$d/root/cluster.key" "$cluster"
        printf '[manager]\ndir = "%s"\n[[mdt]]\ndir = "%s"\nindex = 0\n' "$d/root/mgt" "$d/mdt0"
        printf '[[ost]]\ndir = "%s"\nindex = %d\n' "$d/ost0" 0 "$d/ost1" 1 "$d/ost2" 2
    } >"$d/node.toml"
    "$WEFT" target format --config "$d/node.toml" || return 1
    "$WEFT" server --config "$d/node.toml" >"$d/ready" 2>"$d/server.log" &
    full_server=$!
    timeout 30 sh -c "until grep -q ready '$d/ready'; do sleep 0.1; done" &&
        "$WEFT" mount "$WEFT_MANAGER" "$d/mnt" -o "key=$d/root/cluster.key,log=$d/mount.log"
}

full_down() {
    # Without looking first, which would wait for a server that is gone.
    fusermount3 -uz "$d/mnt" 2>/dev/null
    [[ -n ${full_server:-} ]] && kill "$full_server" && wait "$full_server"
    local disk
    for disk in mdt0 ost0 ost1 ost2; do
        mountpoint -q "$d/$disk" && umount "$d/$disk"
    done
}

df_of() { "$WEFT" df --key "$d/root/cluster.key" | awk -v target="$1" -v column="$2" '$1 == target { print $column }'; }

# Whether a command fails, and with "No space left".
no_space() {
    local out
    out=$("$@" 2>&1) && { say "$*: succeeded on a full file system"; return 1; }
    [[ $out == *"No space left"* ]] || { say "$*: $out"; return 1; }
}

data_disks_full() {
    local f="$d/mnt" n=0 used
    "$WEFT" setstripe -c 1 "$f" && mkdir "$f/first" && "$WEFT" setstripe -c 1 -i 0 "$f/first" || return 1
    # The smallest OST is filled alone; the manager and the MDS learn of it with the next heartbeats.
    while dd if=/dev/urandom of="$f/first/$n" bs=1M count=4 status=none 2>>"$d/dd"; do n=$((n + 1)); done
    grep -q "No space left" "$d/dd" && rm "$f/first/$n" && sleep 4
    head -c 3M /dev/urandom >"$d/small" && cp "$d/small" "$f/before" || return 1
    dd if=/dev/zero of="$f/first/0" bs=1M count=1 conv=notrunc status=none || { say "what is there cannot be overwritten"; return 1; }
    md5sum "$f"/first/* >"$d/sums" && [[ $(df_of OST0000 5) -lt 8192 && $(df_of OST0002 5) -gt 200000 ]] || return 1
    say "OST0000 is full with $n files of 4 MiB: $(df_of OST0000 6) used; OST0002 $(df_of OST0002 6)"
    used=0
    for n in $(seq 40); do
        cp "$d/small" "$f/elsewhere.$n" || { say "a new file is refused while two OSTs have room"; return 1; }
        [[ $("$WEFT" getstripe -i "$f/elsewhere.$n") == 0 ]] && used=$((used + 1))
    done
    ((used == 0)) || { say "$used of 40 new files are on the full OST"; return 1; }
    # Now all of it. Files of several OSTs find the last room.
    "$WEFT" setstripe -c -1 "$f" || return 1
    n=0
    while dd if=/dev/urandom of="$f/all.$n" bs=1M count=2 status=none 2>>"$d/dd"; do n=$((n + 1)); done
    sleep 4
    no_space dd if=/dev/zero of="$f/first/0" bs=1M seek=64 count=8 conv=notrunc status=none || return 1
    md5sum --quiet -c "$d/sums" && cmp "$d/small" "$f/before" && cmp "$d/small" "$f/elsewhere.40" || return 1
    say "all OSTs are full: $(df_of filesystem 5) used; everything is readable"
    rm "$f"/all.* "$f"/elsewhere.* && sleep 5 && cp "$d/small" "$f/after" && cmp "$d/small" "$f/after" &&
        dd if=/dev/urandom of="$f/large" bs=1M count=100 status=none && md5sum --quiet -c "$d/sums" &&
        say "room was made: $(df_of filesystem 5) used; writing goes on"
}

metadata_disk_full() {
    local f="$d/mnt" made
    mkdir "$f/names" && say "MDT0000 before: $(df_of MDT0000 5) KiB available" || return 1
    made=$(python3 - "$f/names" <<'END'
import errno, os, sys
made, directory = 0, os.open(sys.argv[1], os.O_RDONLY)
try:
    while made < 5000000:
        # Bytes that the store cannot compress.
        os.symlink(os.urandom(3000).replace(b"\0", b"0"), f"a rather long name of an entry, number {made}", dir_fd=directory)
        made += 1
except OSError as error:
    print(made if error.errno == errno.ENOSPC else error)
END
    )
    [[ $made =~ ^[0-9]+$ ]] || { say "making names: $made"; return 1; }
    say "MDT0000 is full after $made names: $(df_of MDT0000 5) KiB available"
    no_space touch "$f/names/new" && no_space mkdir "$f/names/new" && no_space ln "$f/before" "$f/link" &&
        no_space setfattr -n user.a -v b "$f/before" || return 1
    cmp "$d/small" "$f/before" && echo more >>"$f/after" && [[ $(ls -f "$f/names" | wc -l) -eq $((made + 2)) ]] &&
        mv "$f/before" "$f/renamed" && rm -r "$f/names" || { say "a full MDT refuses what needs no room"; return 1; }
    timeout 60 sh -c "until touch '$f/again'; do sleep 1; done" 2>/dev/null || { say "removing names has made no room"; return 1; }
    sleep 5 && say "all removed: $(df_of MDT0000 5) KiB available"
    mkdir "$f/names" && cp "$d/small" "$f/names/new" && cmp "$d/small" "$f/names/new"
}
