# Suites of what users run, with verification.

fsx_run() { # NAME SEED CONFIG-LINES
    printf '%s\n' "$3" >"$base/fsx-$1.toml"
    "$TOOLS/bin/fsx" -S "$2" -N "$FSX_OPS" -f "$base/fsx-$1.toml" "$WEFT_MOUNT/fsx.$1"
}

suite_fsx() {
    tool fsx 0.3.2 fsx
    local ops
    ops=$(awk "BEGIN { print int($FSX_OPS / 4) }")
    FSX_OPS=$ops
    fsx_run default 1 'flen = 262144' &&
        fsx_run large 2 $'flen = 33554432\n[opsize]\nmax = 1048576' &&
        "$WEFT" setstripe -c 4 -S 64K "$WEFT_MOUNT/fsx.striped" && fsx_run striped 3 'flen = 1048576' &&
        "$WEFT" setstripe -c 4 -S 4K "$WEFT_MOUNT/fsx.narrow" && fsx_run narrow 4 'flen = 262144'
}

suite_fio() { (
    # It leaves files with its state where it is run.
    mkdir "$base/fio" && cd "$base/fio" || return 1
    local engine
    for engine in psync mmap libaio; do
        fio --name="verify-$engine" --directory="$WEFT_MOUNT" --ioengine="$engine" --rw=randwrite --bs=4k-256k \
            --size=256M --numjobs=2 --verify=crc32c --verify_fatal=1 --do_verify=1 --minimal >/dev/null || return 1
    done
    fio --name=direct --directory="$WEFT_MOUNT" --direct=1 --ioengine=libaio --iodepth=16 --rw=randrw --bs=4k \
        --size=128M --verify=md5 --verify_fatal=1 --minimal >/dev/null
); }

suite_git() {
    git clone -q --no-hardlinks . "$WEFT_MOUNT/clone" && git -C "$WEFT_MOUNT/clone" fsck --full --strict &&
        git -C "$WEFT_MOUNT/clone" gc --quiet --aggressive && git -C "$WEFT_MOUNT/clone" fsck
}

suite_tree() {
    local sources
    sources=$(echo "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/ | cut -d' ' -f1)
    cp -a "$sources" "$WEFT_MOUNT/tree" && diff -r --no-dereference "$sources" "$WEFT_MOUNT/tree" &&
        rsync -a --checksum "$sources/" "$WEFT_MOUNT/tree2/" && diff -r --no-dereference "$sources" "$WEFT_MOUNT/tree2" &&
        find "$WEFT_MOUNT/tree" -type f | wc -l && du -s "$WEFT_MOUNT/tree" && rm -rf "$WEFT_MOUNT/tree" "$WEFT_MOUNT/tree2"
}

suite_rust() {
    git clone -q . "$WEFT_MOUNT/rust" &&
        (cd "$WEFT_MOUNT/rust" && CARGO_TARGET_DIR="$WEFT_MOUNT/rust/target" cargo build --release --locked -p weft-model)
}

suite_c() {
    local d="$WEFT_MOUNT/c"
    mkdir -p "$d" && for i in $(seq 200); do
        printf 'int f%d(int x){return x+%d;}\n' "$i" "$i" >"$d/f$i.c"
    done
    printf 'int f1(int);int main(){return f1(0)-1;}\n' >"$d/main.c"
    printf 'O=$(patsubst %%.c,%%.o,$(wildcard *.c))\na.out: $(O)\n\tcc -o $@ $(O)\n' >"$d/Makefile"
    make -s -C "$d" -j2 && "$d/a.out"
}

suite_sqlite() {
    local mode
    for mode in wal delete truncate persist; do
        sqlite3 "$WEFT_MOUNT/$mode.db" "PRAGMA journal_mode=$mode; CREATE TABLE t(a INTEGER PRIMARY KEY, b BLOB);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<20000)
            INSERT INTO t SELECT i, randomblob(200) FROM n; UPDATE t SET b=randomblob(100) WHERE a%3=0;
            DELETE FROM t WHERE a%7=0; VACUUM; PRAGMA integrity_check;" | tail -1 | grep -qx ok || return 1
    done
}

suite_postgres() {
    local bin
    bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
    [[ -n $bin ]] || { echo "postgresql is not installed"; return 77; }
    install -d -o postgres "$WEFT_MOUNT/pg" "$base/pgsock" && chmod 700 "$WEFT_MOUNT/pg"
    local as="runuser -u postgres --"
    $as "$bin/initdb" -D "$WEFT_MOUNT/pg" --data-checksums >/dev/null &&
        $as "$bin/pg_ctl" -D "$WEFT_MOUNT/pg" -w -l "$base/pgsock/log" -o "-k $base/pgsock -c listen_addresses=''" start >/dev/null &&
        $as "$bin/pgbench" -h "$base/pgsock" -i -s 10 -q postgres &&
        $as "$bin/pgbench" -h "$base/pgsock" -c 4 -j 2 -T 30 postgres &&
        $as "$bin/pg_ctl" -D "$WEFT_MOUNT/pg" -w stop >/dev/null &&
        $as "$bin/pg_checksums" -D "$WEFT_MOUNT/pg" --check
}

suite_sparse() {
    local f="$WEFT_MOUNT/sparse"
    truncate -s 10G "$f" && dd if=/dev/urandom of="$f" bs=1M seek=5000 count=3 conv=notrunc status=none &&
        cp --sparse=always "$f" "$f.2" && cmp "$f" "$f.2" && [[ $(du -m "$f.2" | cut -f1) -lt 20 ]] &&
        dd if="$f" of="$f.3" bs=1M skip=4999 count=6 iflag=direct oflag=direct status=none &&
        cmp <(dd if="$f" bs=1M skip=4999 count=6 status=none) "$f.3"
}
