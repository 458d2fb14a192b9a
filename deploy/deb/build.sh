#!/bin/sh
# Builds the Debian package of what is checked out: target/debian/soloist_VERSION_ARCH.deb
#
#   deploy/deb/build.sh            builds the release, too
#   deploy/deb/build.sh PROGRAM    takes that program instead
#
# DEB_REVISION=2 packs the same version once more, with a change of the package only.
set -eu
cd "$(dirname -- "$0")/../.."

# Reproducible: the same commit gives the same bytes.
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || echo 0)}"
export SOURCE_DATE_EPOCH

program=${1:-target/dist/soloist}
[ $# -gt 0 ] || cargo build --profile dist --features full --locked --bin soloist

# What the package holds besides files of the repository; `assets` in Cargo.toml names them.
made=target/package
rm -rf -- "$made"
mkdir -p "$made/man"
cp -- "$program" "$made/soloist"
command -v strip >/dev/null 2>&1 && strip --strip-all "$made/soloist"
"$program" completions bash >"$made/soloist.bash"
"$program" completions zsh >"$made/_soloist"
"$program" completions fish >"$made/soloist.fish"
"$program" man --dir "$made/man"
gzip -9n "$made"/man/*.1
gzip -9nc CHANGELOG.md >"$made/changelog.gz"

[ "${ONLY_ASSETS:-}" = yes ] && exit 0
cargo deb --version >/dev/null 2>&1 || {
    echo "deploy/deb/build.sh: installing cargo-deb" >&2
    cargo install cargo-deb --locked --quiet
}
cargo deb --locked --no-build --no-strip --deb-revision "${DEB_REVISION:-1}"
