#!/usr/bin/env bash
# A bare Debian 12 for the scripts that install the package; they read this file. Whoever reads it has a function `say`.

# Unpacks a bare system into a directory. debootstrap makes it once, from where this machine has its own packages; it is
# kept in .build/deb/bare.tar.
bare_system() {
  local system=$1 mirror bare
  if [ ! -e .build/deb/bare.tar ]; then
    say "debootstrap, once"
    mkdir -p .build/deb
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
    bare=$(mktemp -d)
    debootstrap --variant=minbase --include=systemd-sysv bookworm "$bare" "$mirror" >&2
    tar --numeric-owner -C "$bare" -cf .build/deb/bare.tar.part .
    mv .build/deb/bare.tar.part .build/deb/bare.tar
    rm -rf "$bare"
  fi
  tar --numeric-owner -C "$system" -xf .build/deb/bare.tar
  # The service's user goes through it too.
  chmod 0755 "$system"
  # As every installer writes it; debootstrap alone does not.
  printf '127.0.0.1 localhost\n::1 localhost\n' >"$system/etc/hosts"
}

# Downloads what a package depends on and the system does not have, into its /debs/needed.
bare_needed() {
  local system=$1 package=$2 status=$1/var/lib/dpkg/status
  mkdir -p "$system/debs/needed/partial"
  say "downloads what the package depends on"
  apt-get -qq -y --no-install-recommends --download-only -o "Dir::State::status=$status" \
    -o Dir::State::extended_states=/dev/null -o "Dir::Cache::archives=$system/debs/needed" -o APT::Sandbox::User=root \
    install "$(realpath "$package")" >&2
}

# Credentials of the form that Apple and Google give: a key, and the file of a service account.
bare_credentials() {
  local apple=$1 google=$2 key
  openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$apple"
  key=$(openssl genrsa 2048 2>/dev/null)
  jq -n --arg key "$key" '{type: "service_account", project_id: "acme", private_key_id: "1",
    private_key: ($key + "\n"), client_email: "push@acme.example", token_uri: "https://oauth2.googleapis.com/token"}' \
    >"$google"
}

# In namespaces of its own for network, mounts and processes: no network but loopback, and what a system has besides
# its files.
bare_wakes() {
  local system=$1
  ip link set lo up
  mount -t proc proc "$system/proc"
  mount --rbind /dev "$system/dev"
  mount -t tmpfs tmpfs "$system/run"
}

# Becomes a command in the system, as root.
bare_becomes() {
  local system=$1
  shift
  exec chroot "$system" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
}
# Runs one.
bare_runs() { (bare_becomes "$@"); }
