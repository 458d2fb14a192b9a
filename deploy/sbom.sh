#!/bin/sh
# Writes the software bill of materials (CycloneDX 1.5, JSON): every crate that is linked into the program, with version, licence
# and checksum, as Cargo.lock has them.
#
#   deploy/sbom.sh            writes soloist.cdx.json
#   deploy/sbom.sh FILE.json
set -eu
cd "$(dirname -- "$0")/.."

file=${1:-soloist.cdx.json}
case $file in
    *.json) ;;
    *) echo "deploy/sbom.sh: the file must end with .json, as $file.json does" >&2; exit 2 ;;
esac
cargo cyclonedx --version >/dev/null 2>&1 || {
    echo "deploy/sbom.sh: installing cargo-cyclonedx" >&2
    cargo install cargo-cyclonedx --locked --quiet
}
# It writes beside each Cargo.toml of the workspace, and names the files itself; that of the program has all of them in it.
cargo cyclonedx --all-features --format json --spec-version 1.5 --target x86_64-unknown-linux-gnu --override-filename .sbom --quiet
mv -- .sbom.json "$file"
rm -f -- crates/*/.sbom.json
echo "$file"
