#!/bin/sh
# The steps of a release, as .github/workflows/release.yml calls them; RELEASING.md says how to do them by hand.
#
#   deploy/release.sh check TAG          does everything name this version?
#   deploy/release.sh notes TAG          what CHANGELOG.md says of it, on standard output
#   deploy/release.sh rust               installs the compiler of the toolchain file or the newest stable one
#   deploy/release.sh build TAG          release/: program, Debian package, bill of materials
#   deploy/release.sh static TAG         release/: the program once more, static (musl), for any Linux
#   deploy/release.sh image TAG IMAGE    builds the image by digest, tries it, pushes it
#   deploy/release.sh publish TAG        checksums, and the release with its notes
set -eu
cd "$(dirname -- "$0")/.."

fail() {
    echo "deploy/release.sh: $1" >&2
    exit 1
}

step=${1:-} tag=${2:-}
version=${tag#v}
case $step in
    rust) ;;
    check | notes | build | static | image | publish)
        echo "$version" | grep -Eq '^[0-9]+\.[0-9]+\.[0-9]+$' || fail "the tag must be as v1.2.3, not \"$tag\""
        ;;
    *) fail "use check, notes, rust, build, static, image or publish, not \"$step\"" ;;
esac

# Between the heading of the version and the next one.
notes() {
    awk -v head="## [$version]" '
        index($0, "## [") == 1 { said = index($0, head) == 1; next }
        said { print }
    ' CHANGELOG.md
}

names() { grep -q -- "$2" "$1" || fail "$1 does not name $version"; }

check() {
    dots=$(printf %s "$version" | sed 's/\./\\./g')
    names Cargo.toml "^version = \"$dots\"$"
    # Of our own crate: crates of others have versions, too.
    locked=$(sed -n '/^name = "soloist"$/{n; s/^version = "\(.*\)"$/\1/p;}' Cargo.lock)
    [ "$locked" = "$version" ] || fail "Cargo.lock names soloist $locked, not $version: cargo update --workspace"
    names deploy/helm/soloist/Chart.yaml "^appVersion: $dots$"
    names deploy/helm/soloist/values.yaml "^  tag: $dots$"
    names deploy/kubernetes/deployment.yaml "image: soloist:$dots$"
    [ -n "$(notes)" ] || fail "CHANGELOG.md has no section \"## [$version]\""
    [ -f deploy/images.env ] || fail "deploy/images.env is missing: deploy/digests.sh writes it"
}

build() {
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
    export SOURCE_DATE_EPOCH
    deploy/deb/build.sh
    name=soloist-$version-$(uname -m)-linux
    rm -rf release
    mkdir -p "release/$name"
    cp target/package/soloist LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md deploy/soloist.service deploy/await-guards.sh \
        deploy/soloist.conf "release/$name/"
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C release -cf - "$name" |
        gzip -9n >"release/$name.tar.gz"
    rm -rf "release/$name"
    cp target/debian/*.deb release/
    deploy/sbom.sh "release/$name.cdx.json"
    # What is released runs, and is this version.
    target/package/soloist --version | grep -q "^soloist $version (commit $(git rev-parse --short=12 HEAD)" ||
        fail "the program is not of this commit: $(target/package/soloist --version)"
}

# It needs `rustup target add ARCH-unknown-linux-musl` and musl-gcc, for SQLite and the cryptography, which are C.
static() {
    target=$(uname -m)-unknown-linux-musl
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
    export SOURCE_DATE_EPOCH
    command -v musl-gcc >/dev/null || fail "musl-gcc is missing: apt-get install musl-tools"
    env "CC_$(echo "$target" | tr - _)=musl-gcc" cargo build --profile dist --features full --locked --bin soloist --target "$target"
    name=soloist-$version-$(uname -m)-linux-static
    mkdir -p "release/$name"
    strip --strip-all -o "release/$name/soloist" "target/$target/dist/soloist"
    cp LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md deploy/soloist.service deploy/await-guards.sh deploy/soloist.conf "release/$name/"
    # A program that wants a loader is not static.
    ! readelf --program-headers "release/$name/soloist" | grep -q INTERP || fail "the program is not static"
    "release/$name/soloist" --version | grep -q "^soloist $version (commit $(git rev-parse --short=12 HEAD)" ||
        fail "the program is not of this commit: $("release/$name/soloist" --version)"
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C release -cf - "$name" |
        gzip -9n >"release/$name.tar.gz"
    rm -rf "release/$name"
}

image() {
    image=$1
    # shellcheck disable=SC2046
    docker buildx build --load --tag "$image:$version" $(deploy/digests.sh --build) --build-arg VERSION="$version" \
        --build-arg SOLOIST_COMMIT="$(git rev-parse --short=12 HEAD)" \
        --build-arg SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)" .
    docker run --rm "$image:$version" --version
    docker run --rm --read-only --tmpfs /tmp --cap-drop ALL "$image:$version" check
    docker push "$image:$version"
}

publish() {
    (cd release && sha256sum -- * >SHA256SUMS)
    notes >notes.md
    gh release create "$tag" --verify-tag --title "Soloist $version" --notes-file notes.md release/*
}

case $step in
    check) check ;;
    notes) notes ;;
    rust) curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal -c rustfmt -c clippy ;;
    build) build ;;
    static) static ;;
    image) image "${3:?the name of the image}" ;;
    publish) publish ;;
esac
