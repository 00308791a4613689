# What the last build left in .build/debug, for scripts that link programs with it beside SwiftPM. It is sourced, and
# expects $built: the real path of .build/debug.

# present: the objects, each with a zero byte behind it, whose source is there and in that target: a build directory
# keeps those of files that went or moved. SwiftPM writes a list of sources beside the objects of a Swift target; an
# object of C has a list of what it was made of, its source first.
present() {
  local folder list source
  for folder in "$built"/*.build; do
    case ${folder##*/} in *Tests.build | sealbell* | generate_* | snippet_* | *Discovered*) continue ;; esac
    if [ -e "$folder/sources" ]; then
      while read -r source; do
        # A path with blanks stands in quotes.
        source=${source#\'} source=${source%\'}
        [ ! -e "$source" ] || printf '%s\0' "$folder/${source##*/}.o"
      done <"$folder/sources"
    else
      find "$folder" -name '*.d' | while read -r list; do
        source=$(sed -n '2{s/^ *//;s/ .*//;p;q}' "$list")
        [ ! -e "$source" ] || printf '%s\0' "${list%.d}.o"
      done
    fi
  done
}

# archived FILE: all of them in an archive, out of which the linker takes what it needs.
archived() {
  rm -f "$1"
  present | xargs -0 ar qc "$1"
}

# maps: arguments of swiftc by which it finds the C libraries' modules, one in a line.
maps() {
  local map
  for map in Sources/Foundations/C*/module.modulemap Sources/Foundations/C*/include/module.modulemap \
    Packages/SealbellKit/Sources/Foundations/*/module.modulemap \
    .build/checkouts/*/Sources/*/include/module.modulemap "$built"/C*.build/module.modulemap; do
    [ ! -e "$map" ] || printf -- '-Xcc\n-fmodule-map-file=%s\n' "$(realpath "$map")"
  done
}
