import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { releaseOf } from "../package-fields.mjs"

/** What other package managers and the install script need to install the archives of a release. */

/** @typedef {{ version: string, address: string, downloads: string, description: string, sums: Record<string, string> }} Channel */

/**
 * The files with which Homebrew, Scoop, the AUR and `install.sh` install the archives, which must all be there.
 * @param {string} root
 * @param {Record<string, Buffer>} archives
 * @returns {Record<string, Buffer>}
 */
export function channelFiles(root, archives) {
  const channel = {
    ...releaseIn(root),
    description: "Memory that all of your coding agents share",
    sums: Object.fromEntries(Object.entries(archives).map(([name, bytes]) => [name, sha256(bytes)])),
  }
  const texts = {
    "install.sh": installScript(root),
    "dexctx.rb": homebrewFormula(channel),
    "dexctx.json": `${JSON.stringify(scoopManifest(channel), undefined, 4)}\n`,
    PKGBUILD: aurBuild(channel),
    "SRCINFO.txt": aurInfo(channel),
  }
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, Buffer.from(text)]))
}

/**
 * The script that installs the archive for a Mac or a Linux machine.
 * @param {string} root
 */
export function installScript(root) {
  const { version, downloads } = releaseIn(root)
  const script = readFileSync(join(root, "scripts/release/install.sh"), "utf8")
  return script.replace("@VERSION@", version).replace("@DOWNLOADS@", downloads)
}

/** @param {string} root */
function releaseIn(root) {
  const { version, address } = releaseOf(root)
  if (address === "") throw new Error('"repository" in package.json must name the repository.')
  return { version, address, downloads: `${address}/releases/download/v${version}` }
}

/** @param {Buffer} bytes */
export function sha256(bytes) {
  return createHash("sha256").update(bytes).digest("hex")
}

/** @type {(channel: Channel, system: string, kind?: string) => { url: string, sum: string }} */
function archiveOf({ version, downloads, sums }, system, kind = "tar.gz") {
  const name = `dex-${version}-${system}.${kind}`
  const sum = sums[name]
  if (sum === undefined) throw new Error(`${name} was not made.`)
  return { url: `${downloads}/${name}`, sum }
}

/** @param {Channel} channel */
function homebrewFormula(channel) {
  const { version, address, description } = channel
  const onProcessor = (/** @type {string} */ processor, /** @type {string} */ archive) => {
    const { url, sum } = archiveOf(channel, archive)
    return [`    on_${processor} do`, `      url "${url}"`, `      sha256 "${sum}"`, "    end"].join("\n")
  }
  return `class Dexctx < Formula
  desc "${description}"
  homepage "${address}"
  version "${version}"
  license "MIT"

  on_macos do
${onProcessor("arm", "darwin-arm64")}
${onProcessor("intel", "darwin-x64")}
  end

  on_linux do
${onProcessor("arm", "linux-arm64")}
${onProcessor("intel", "linux-x64")}
  end

  def install
    libexec.install Dir["*"]
    bin.install_symlink libexec/"dex"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/dex --version")
  end
end
`
}

/** @param {Channel} channel */
function scoopManifest(channel) {
  const { version, address, description, downloads } = channel
  const { url, sum } = archiveOf(channel, "win32-x64", "zip")
  const inUpdates = (/** @type {string} */ text) => text.replaceAll(version, "$version")
  return {
    version,
    description,
    homepage: address,
    license: "MIT",
    architecture: { "64bit": { url, hash: sum, extract_dir: `dex-${version}-win32-x64` } },
    bin: "dex.cmd",
    checkver: "github",
    autoupdate: {
      architecture: { "64bit": { url: inUpdates(url), extract_dir: "dex-$version-win32-x64" } },
      hash: { url: `${inUpdates(downloads)}/SHA256SUMS` },
    },
  }
}

/** The systems of the AUR. */
const AUR = { x86_64: "linux-x64", aarch64: "linux-arm64" }

/** @param {Channel} channel */
function aurBuild(channel) {
  const { version, address, description } = channel
  const sources = Object.entries(AUR).map(([arch, system]) => {
    const { url, sum } = archiveOf(channel, system)
    return `source_${arch}=("${url}")\nsha256sums_${arch}=('${sum}')`
  })
  return `pkgname=dexctx-bin
pkgver=${version}
pkgrel=1
pkgdesc="${description}"
arch=('x86_64' 'aarch64')
url="${address}"
license=('MIT')
depends=('gcc-libs')
provides=('dexctx')
conflicts=('dexctx')
options=('!strip')
${sources.join("\n")}

package() {
  install -d "$pkgdir/opt" "$pkgdir/usr/bin" "$pkgdir/usr/share/licenses/$pkgname"
  cp -r --no-preserve=ownership "$srcdir"/dex-"$pkgver"-linux-* "$pkgdir/opt/dexctx"
  ln -s /opt/dexctx/dex "$pkgdir/usr/bin/dex"
  install -m644 "$pkgdir/opt/dexctx/LICENSE" "$pkgdir/opt/dexctx/NODE_LICENSE" "$pkgdir/usr/share/licenses/$pkgname/"
}
`
}

/** @param {Channel} channel */
function aurInfo(channel) {
  const { version, address, description } = channel
  const fields = [
    ["pkgdesc", description],
    ["pkgver", version],
    ["pkgrel", "1"],
    ["url", address],
    ...Object.keys(AUR).map((arch) => ["arch", arch]),
    ["license", "MIT"],
    ["depends", "gcc-libs"],
    ["provides", "dexctx"],
    ["conflicts", "dexctx"],
    ["options", "!strip"],
    ...Object.entries(AUR).flatMap(([arch, system]) => {
      const { url, sum } = archiveOf(channel, system)
      return [
        [`source_${arch}`, url],
        [`sha256sums_${arch}`, sum],
      ]
    }),
  ]
  return `pkgbase = dexctx-bin\n${fields.map(([name, value]) => `\t${name} = ${value}\n`).join("")}\npkgname = dexctx-bin\n`
}
