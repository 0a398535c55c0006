#!/bin/sh
# Installs dex from its archive for this system, into a folder of your own; no root, no npm, no Node needed.
#   sh install.sh              install, or replace an older version
#   sh install.sh --uninstall  remove the program (your history in ~/.dex stays)
# DEX_INSTALL_DIR (~/.local/share/dexctx) gets the program, DEX_BIN_DIR (~/.local/bin) a link to it.
set -eu

version="@VERSION@"
downloads="${DEX_DOWNLOADS:-@DOWNLOADS@}"
folder="${DEX_INSTALL_DIR:-$HOME/.local/share/dexctx}"
bin="${DEX_BIN_DIR:-$HOME/.local/bin}"

fail() {
  echo "$1 Nothing was installed." >&2
  exit 1
}

# Only what this script installed.
remove_others() {
  for old in "$folder"/dex-*; do
    if [ "$old" != "$1" ] && [ -f "$old/lib/dist/dex.js" ]; then rm -rf "$old"; fi
  done
}

if [ "${1:-}" = --uninstall ]; then
  case $(readlink "$bin/dex" 2>/dev/null || true) in "$folder"/*) rm "$bin/dex" ;; esac
  remove_others ""
  rmdir "$folder" 2>/dev/null || true
  echo "dex was removed. Your history is still in ~/.dex."
  exit 0
fi

case $(uname -s) in
Linux) system=linux ;;
Darwin) system=darwin ;;
*) fail "There is no archive for $(uname -s). On Windows use the .zip; elsewhere: npm install -g dexctx." ;;
esac
case $(uname -m) in
x86_64 | amd64) system=$system-x64 ;;
aarch64 | arm64) system=$system-arm64 ;;
*) fail "There is no archive for $(uname -m). With Node: npm install -g dexctx." ;;
esac

if command -v curl >/dev/null; then
  download() { curl -fsSL --proto '=https,file' --proto-redir '=https' -o "$2" "$1"; }
elif command -v wget >/dev/null; then
  download() { wget -q -O "$2" "$1"; }
else
  fail "curl or wget is needed."
fi
if command -v sha256sum >/dev/null; then
  sum_of() { sha256sum <"$1"; }
elif command -v shasum >/dev/null; then
  sum_of() { shasum -a 256 <"$1"; }
else
  fail "sha256sum or shasum is needed."
fi

name="dex-$version-$system"
mkdir -p "$folder"
work=$(mktemp -d "$folder/.installing.XXXXXX")
trap 'rm -rf "$work"' EXIT
download "$downloads/SHA256SUMS" "$work/sums" || fail "$downloads/SHA256SUMS could not be downloaded."
download "$downloads/$name.tar.gz" "$work/archive" || fail "$downloads/$name.tar.gz could not be downloaded."
expected=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\.tar\.gz\$/\1/p" "$work/sums")
actual=$(sum_of "$work/archive" | cut -c 1-64)
if [ -z "$expected" ] || [ "$actual" != "$expected" ]; then fail "$name.tar.gz has the wrong SHA-256."; fi
tar -xzf "$work/archive" -C "$work"
"$work/$name/dex" --version >/dev/null || fail "dex does not start here (on Linux it needs glibc 2.28). With Node: npm install -g dexctx."
if [ -e "$folder/$name" ]; then rm -rf "${folder:?}/$name"; fi
mv "$work/$name" "$folder/$name"
mkdir -p "$bin"
if [ -e "$bin/dex" ] && [ ! -L "$bin/dex" ]; then
  echo "$bin/dex is another program and stays. Start dex with: $folder/$name/dex" >&2
else
  ln -sf "$folder/$name/dex" "$bin/dex"
fi
remove_others "$folder/$name"
echo "dex $version is installed in $folder/$name."
case ":$PATH:" in *":$bin:"*) ;; *) echo "Add $bin to PATH." ;; esac
