#!/bin/sh
# Sourced: the Debian packages that each use of the tree needs, and how to install those that are missing.

packages_of() # build|test|style
{
    case $1 in
    build)
        echo gcc libc6-dev make autoconf automake autoconf-archive pkg-config \
            libuv1-dev libjansson-dev libsqlite3-dev libdnnl-dev zlib1g-dev
        ;;
    test) echo check socat python3 python3-pytest ;;
    style) echo clang clang-format shellcheck git gawk ;;
    esac
}

install_packages() # GROUP…
{
    missing=
    for group in "$@"; do
        for package in $(packages_of "$group"); do
            dpkg-query -W -f '${Status}' "$package" 2>/dev/null |
                grep -q '^install ok installed$' || missing="$missing $package"
        done
    done
    [ -n "$missing" ] || return 0
    echo "installing:$missing" >&2
    sudo=
    [ "$(id -u)" -eq 0 ] || sudo=sudo
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q update >&2
    # shellcheck disable=SC2086 # a list of words
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends \
        $missing >&2
}
