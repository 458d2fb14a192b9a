#!/bin/sh
# Draws every diagram of this directory, which is text, in both themes: NAME.dot becomes NAME-light.svg and NAME-dark.svg. Needs graphviz.
set -eu
cd "$(dirname -- "$0")"
command -v dot >/dev/null 2>&1 || {
    echo "make.sh: dot is missing: apt-get install graphviz" >&2
    exit 1
}

# draw THEME LINE TEXT BOX
draw() {
    for diagram in *.dot; do
        # Without the version of the program, which changes no line that is seen.
        dot -Tsvg -Gbgcolor=transparent -Gfontname=sans-serif -Nfontname=sans-serif -Efontname=sans-serif \
            -Gfontsize=11 -Nfontsize=12 -Efontsize=10 -Gcolor="$2" -Gfontcolor="$3" \
            -Ncolor="$2" -Nfontcolor="$3" -Nfillcolor="$4" -Ecolor="$2" -Efontcolor="$3" "$diagram" |
            sed -e '/^<!--/d' -e '/^ -->/d' -e '/^<!DOCTYPE/d' -e '/^ "http/d' >"${diagram%.dot}-$1.svg"
    done
}
draw light '#57606a' '#1f2328' '#f6f8fa'
draw dark '#8b949e' '#e6edf3' '#161b22'
