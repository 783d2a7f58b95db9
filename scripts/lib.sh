# Shared by the scripts: a scratch file system that is always taken down again.
WEFT=${WEFT:-${CARGO_TARGET_DIR:-$HOME/.cache/weft/target}/release/weft}
TOOLS=${WEFT_TOOLS:-$HOME/.cache/weft/tools}

# weft_up DIR MOUNT [options of `weft dev up`]: a file system that `weft_down` or the end of the script
# takes down.
weft_up() {
    WEFT_DIR=$1 WEFT_MOUNT=$2
    shift 2
    mkdir -p "$WEFT_DIR" "$WEFT_MOUNT"
    trap weft_down EXIT
    "$WEFT" dev up --dir "$WEFT_DIR" --mount "$WEFT_MOUNT" "$@"
}

weft_down() {
    "$WEFT" dev down --dir "$WEFT_DIR" || true
    mountpoint -q "$WEFT_MOUNT" && fusermount3 -uz "$WEFT_MOUNT" || true
}

# tool CRATE VERSION BINARY: installs a test program once.
tool() {
    [[ -x $TOOLS/bin/$3 ]] && return
    echo "==> installing $1 $2"
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$HOME/.cache/weft/target}/tools \
        cargo install --quiet --locked --root "$TOOLS" "$1@$2"
}
