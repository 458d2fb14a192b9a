#!/bin/sh
# Writes the images that a release is built from and tried with, by digest: the same tag may be another image tomorrow.
#
#   deploy/digests.sh            writes deploy/images.env: NAME=image@sha256:... a line
#   deploy/digests.sh --build    prints them as build arguments for docker build
set -eu
cd "$(dirname -- "$0")"

if [ "${1:-}" = --build ]; then
    sed -n 's/^\(BUILD_IMAGE\|RUN_IMAGE\)=/--build-arg &/p' images.env
    exit 0
fi

digest() {
    found=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$2")
    case $found in
        sha256:*) echo "$1=$2@$found" ;;
        *) echo "deploy/digests.sh: no digest of $2: $found" >&2; exit 1 ;;
    esac
}
{
    digest BUILD_IMAGE rust:1-bookworm
    digest RUN_IMAGE debian:bookworm-slim
    digest REDIS_IMAGE redis:7-bookworm
    digest CADDY_IMAGE caddy:2
} >images.env.new
mv images.env.new images.env
cat images.env
