# Sourced: the Debian packages a build and the tests need, and how to install those that are missing.
BUILD_PACKAGES="gcc libc6-dev make autoconf automake autoconf-archive pkg-config
    libuv1-dev libjansson-dev libsqlite3-dev libdnnl-dev zlib1g-dev"
TEST_PACKAGES="check socat python3 python3-pytest"

install_packages()
{
    missing=
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
            missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    echo "installing:$missing" >&2
    sudo=
    [ "$(id -u)" -eq 0 ] || sudo=sudo
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q update >&2
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $missing >&2
}
