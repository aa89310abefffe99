#!/bin/sh
# Sourced: the Debian packages that each use of the tree needs, and how to install those that are missing.

packages_of() # build|test|style|fuzz
{
    case $1 in
    build)
        echo gcc g++ libc6-dev make autoconf automake autoconf-archive pkg-config \
            libuv1-dev libjansson-dev libsqlite3-dev libdnnl-dev zlib1g-dev \
            libjpeg62-turbo-dev libpng-dev libcairo2-dev libncurses-dev
        ;;
    test) echo check socat tmux zsh fish python3 python3-pytest ;;
    fuzz) echo clang libclang-rt-dev ;;
    style) echo clang clang-format shellcheck git gawk ;;
    esac
}

missing_packages() # GROUP…
{
    for group in "$@"; do
        for package in $(packages_of "$group"); do
            dpkg-query -W -f '${Status}' "$package" 2>/dev/null |
                grep -q '^install ok installed$' || printf ' %s' "$package"
        done
    done
}

apt_get() # ARGUMENT…: as root; waits while another apt-get is at work
{
    if [ "$(id -u)" -eq 0 ]; then
        env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >&2
    else
        sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >&2
    fi
}

install_packages() # GROUP…
{
    if ! command -v apt-get >/dev/null; then
        echo "no apt-get here: what Debian calls$(missing_packages "$@") must be there already" >&2
        return 0
    fi
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        echo "neither root nor sudo: have somebody install$missing" >&2
        return 1
    fi
    echo "installing:$missing" >&2
    # shellcheck disable=SC2086 # a list of words
    apt_get update && apt_get install -y --no-install-recommends $missing
}
