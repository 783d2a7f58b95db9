# A mount as the upper layer of an overlay, as containers use one.

suite_overlay() { (
    local d="$WEFT_MOUNT/overlay" o="$base/overlay"
    mkdir -p "$d/upper" "$d/work" "$o/lower" "$o/merged" "$o/expected" "$o/layers" || return 1
    trap 'umount -l "$o/merged" 2>/dev/null' EXIT
    tree "$o/lower" && cp -a "$o/lower/." "$o/expected" &&
        mount -t overlay overlay -o "lowerdir=$o/lower,upperdir=$d/upper,workdir=$d/work" "$o/merged" || return 1
    changes "$o/expected" && changes "$o/merged" && same "$o/expected" "$o/merged" && whiteouts "$d/upper" || return 1
    umount "$o/merged" &&
        mount -t overlay overlay -o "lowerdir=$o/lower,upperdir=$d/upper,workdir=$d/work" "$o/merged" &&
        same "$o/expected" "$o/merged" && umount "$o/merged" || return 1
    say "an overlay on the mount holds what it should, also when mounted again"
    layers
); }

tree() { # DIRECTORY: something to change
    mkdir -p "$1/etc" "$1/usr/bin" "$1/usr/share/doc/deep" "$1/gone" "$1/moved" || return 1
    local i
    for i in $(seq 300); do
        echo "$i" >"$1/usr/share/doc/$i" && head -c $((i * 100)) /dev/urandom >"$1/usr/share/doc/deep/$i"
    done
    cp /bin/ls "$1/usr/bin/ls" && ln "$1/usr/bin/ls" "$1/usr/bin/dir" && ln -s ../usr/bin "$1/gone/bin" &&
        echo old >"$1/etc/passwd" && touch "$1/moved/a" "$1/moved/b" "$1/gone/x"
}

changes() { # DIRECTORY: the same changes each time
    tar -C scripts -cf - . | tar -C "$1" -xf - && echo new >>"$1/etc/passwd" &&
        rm -r "$1/gone" "$1/usr/share/doc/1" && mv "$1/usr/share/doc/2" "$1/usr/share/doc/two" &&
        mv "$1/etc/passwd" "$1/etc/shadow" && mkdir "$1/gone" && echo again >"$1/gone/y" &&
        cp -a "$1/moved" "$1/moved2" && rm -r "$1/moved" && mv "$1/moved2" "$1/moved3" &&
        chmod 700 "$1/usr/bin" && rm "$1/usr/bin/dir" && mv "$1/suites.d" "$1/usr/suites"
}

# same A B: names, contents, modes, owners and attributes. (An overlay breaks up links below it.)
same() {
    diff -r --no-dereference "$1" "$2" && diff <(listed "$1") <(listed "$2")
}

listed() {
    (cd "$1" && find . ! -type d -printf '%p %y %m %U:%G %s %l\n' -o -printf '%p d %m %U:%G\n' | sort &&
        find . -print0 | sort -z | xargs -0 getfattr -hd -m '^user\.|^security\.capability')
}

whiteouts() { # DIRECTORY: there are some, and they are what the kernel takes for such
    [[ -c $1/usr/share/doc/1 && $(stat -c %t:%T "$1/usr/share/doc/1") == 0:0 && -c $1/etc/passwd ]]
}

# Layers as of an image, unpacked on top of each other, each on Weft and on the local disk beside it.
layers() {
    local o="$base/overlay" place n layer stack mounted
    for place in "$o/local" "$WEFT_MOUNT/overlay/image"; do
        stack="$o/lower" mounted="$o/merged"
        for n in 1 2 3 4; do
            layer="$place/$n"
            mkdir -p "$layer/upper" "$layer/work" || return 1
            # The local disk's own overlay shows what is right.
            mount -t overlay overlay -o "lowerdir=$stack,upperdir=$layer/upper,workdir=$layer/work" "$mounted" &&
                "layer_$n" "$mounted" || { umount "$mounted"; return 1; }
            stack="$layer/upper:$stack"
            ((n == 4)) && cp -a "$mounted" "$place/result"
            umount "$mounted" || return 1
        done
        mount -t overlay overlay -o "lowerdir=$stack" "$mounted" && same "$place/result" "$mounted" || return 1
        umount "$mounted" || return 1
    done
    # diff(1) takes any two whiteouts for different.
    same "$o/local/result" "$WEFT_MOUNT/overlay/image/result" &&
        diff <(listed "$o/local/4/upper") <(listed "$WEFT_MOUNT/overlay/image/4/upper") &&
        say "four layers on the mount are those on the local disk"
}

layer_1() { tar -C crates -cf - weft-model weft-rpc | tar -C "$1" -xf - && ln "$1/weft-model/Cargo.toml" "$1/hard" &&
    [[ $1/hard -ef $1/weft-model/Cargo.toml ]]; }

layer_2() {
    setfattr -n user.layer -v two "$1/weft-model/Cargo.toml" && cp /bin/ls "$1/ls" && setcap cap_net_raw+ep "$1/ls" &&
        rm -r "$1/weft-rpc/src"
}

layer_3() { mkdir "$1/weft-rpc/src" && echo 3 >"$1/weft-rpc/src/lib.rs" && rm -r "$1/usr" && rm "$1/hard"; }

layer_4() {
    tar --xattrs --xattrs-include='*' -C "$1" -cf "$base/overlay/layers/all.tar" . && mkdir "$1/again" &&
        tar --xattrs --xattrs-include='*' -C "$1/again" -xf "$base/overlay/layers/all.tar" &&
        mv "$1/ls" "$1/list" && rm -r "$1/weft-model" "$1/again/weft-rpc"
}
