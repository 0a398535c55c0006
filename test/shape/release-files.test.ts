import { execFileSync, spawnSync } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { inflateRawSync } from "node:zlib"
import { expect, test } from "vitest"
import { tarGz, zip } from "../../scripts/release/archive.mjs"
import { launchers, programFiles } from "../../scripts/release/bundles.mjs"
import { channelFiles, sha256 } from "../../scripts/release/channels.mjs"
import { SYSTEMS } from "../../scripts/release/systems.mjs"
import { vsix } from "../../scripts/release/vsix.mjs"
import { tempDir } from "../support/temp.ts"

const ROOT = join(import.meta.dirname, "../..")
const { version, devDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  version: string
  devDependencies: { node: string }
}
const isWindows = process.platform === "win32"

const LONG = `${"folder/".repeat(14)}a-file-with-a-long-name-in-it.txt`
const FILES = [
  { path: "b/run", bytes: Buffer.from("#!/bin/sh\necho ran\n"), isProgram: true },
  { path: "a ä.txt", bytes: Buffer.alloc(0) },
  { path: LONG, bytes: Buffer.from("x".repeat(1_025)) },
]

/** The files of a .zip, by its directory. */
function unzip(archive: Buffer) {
  const end = archive.lastIndexOf("PK\x05\x06", undefined, "latin1")
  let at = archive.readUInt32LE(end + 16)
  return Array.from({ length: archive.readUInt16LE(end + 10) }, () => {
    const [packed, name] = [archive.readUInt32LE(at + 20), archive.readUInt16LE(at + 28)]
    const mode = archive.readUInt32LE(at + 38) >>> 16
    const local = archive.readUInt32LE(at + 42)
    const path = archive.toString("utf8", at + 46, at + 46 + name)
    const start = local + 30 + archive.readUInt16LE(local + 26)
    at += 46 + name
    return { path, bytes: inflateRawSync(archive.subarray(start, start + packed)), mode }
  })
}

test.skipIf(isWindows)(
  "an archive has the files, their modes and long names, and the same files make the same bytes",
  () => {
    const folder = tempDir()
    const packed = tarGz(FILES)
    expect(tarGz(FILES.toReversed()).equals(packed)).toBe(true)
    writeFileSync(join(folder, "a.tgz"), packed)
    execFileSync("tar", ["-xzf", "a.tgz"], { cwd: folder })
    for (const { path, bytes } of FILES) expect(readFileSync(join(folder, path)).equals(bytes), path).toBe(true)
    expect(execFileSync(join(folder, "b/run"), { encoding: "utf8" })).toBe("ran\n")
    expect(zip(FILES.toReversed()).equals(zip(FILES))).toBe(true)
    const modes = new Map(unzip(zip(FILES)).map(({ path, mode }) => [path, mode]))
    expect(modes).toEqual(
      new Map([
        ["a ä.txt", 0o100644],
        ["b/run", 0o100755],
        [LONG, 0o100644],
      ]),
    )
    for (const { path, bytes } of unzip(zip(FILES)))
      expect(bytes.equals(FILES.find((file) => file.path === path)!.bytes), path).toBe(true)
  },
)

test.skipIf(isWindows)(
  "the launcher starts the Node next to it: with spaces in the path, through links, from PATH",
  () => {
    const folder = join(tempDir(), "un packed")
    mkdirSync(join(folder, "lib"), { recursive: true })
    for (const { path, bytes } of launchers(false)) writeFileSync(join(folder, path), bytes, { mode: 0o755 })
    symlinkSync(process.execPath, join(folder, "node"))
    symlinkSync(join(ROOT, "dist"), join(folder, "lib/dist"))
    mkdirSync(join(folder, "bin"))
    symlinkSync("../dex", join(folder, "bin/one"))
    symlinkSync(join(folder, "bin/one"), join(folder, "bin/two"))
    const run = (command: string, args = ["--version"]) =>
      spawnSync(command, args, {
        cwd: folder,
        env: { HOME: folder, PATH: `${folder}:/usr/bin:/bin` },
        encoding: "utf8",
      }).stdout
    for (const command of ["./dex", join(folder, "dex"), join(folder, "bin/one"), join(folder, "bin/two"), "dex"])
      expect(run(command), command).toBe(`dex ${version}\n`)
    expect(run("sh", ["dex", "--version"])).toBe(`dex ${version}\n`)
  },
)

test("an archive contains what dex loads, for one system, and every system's Node is pinned", () => {
  const paths = programFiles(ROOT, (prebuilt) => prebuilt === "linux-x64.node").map(({ path }) => path)
  const native = paths.filter((path) => path.endsWith(".node"))
  expect(native).toEqual(["node_modules/better-sqlite3/prebuilds/linux-x64.node"])
  for (const path of ["dist/dex.js", "package.json", "node_modules/better-sqlite3/package.json"])
    expect(paths).toContain(path)
  for (const name of ["better-sqlite3", "web-tree-sitter", "@vscode/tree-sitter-wasm"])
    expect(paths).toContain(`node_modules/${name}/LICENSE`)
  const prebuilt = readdirSync(join(ROOT, "node_modules/better-sqlite3/prebuilds"))
  for (const [system, { node, sha512 }] of Object.entries(SYSTEMS)) {
    expect(prebuilt).toContain(`${system}.node`)
    expect(node).toMatch(/^node-[\w-]+@\d+\.\d+\.\d+$/)
    expect(Buffer.from(sha512, "base64").length).toBe(64)
    if (/linux|win32/.test(system)) expect(node.split("@")[1]).toBe(devDependencies.node)
  }
})

test("the extension for VS Code is packed with every file that it loads, and names them to the editor", () => {
  const files = new Map(unzip(vsix(ROOT)).map(({ path, bytes }) => [path, bytes.toString()]))
  const { version: packed, main } = JSON.parse(files.get("extension/package.json")!) as {
    version: string
    main: string
  }
  expect(packed).toBe(version)
  const code = files.get(join("extension", main))!
  for (const [, file] of code.matchAll(/require\("\.\/([^"]+)"\)/g))
    expect(files.has(`extension/${file}`), file).toBe(true)
  const manifest = files.get("extension.vsixmanifest")!
  expect(manifest).toContain(`Id="dexctx" Version="${version}"`)
  for (const [, path] of manifest.matchAll(/ Path="([^"]+)"/g)) expect(files.has(path!), path).toBe(true)
  const types = files.get("[Content_Types].xml")!
  for (const path of files.keys())
    if (path !== "[Content_Types].xml") expect(types).toContain(`"${/\.\w+$/.exec(path)![0]}"`)
})

/** The archives of a release, made of a few bytes. */
const archives = Object.fromEntries(
  Object.keys(SYSTEMS).map((system) => {
    const name = `dex-${version}-${system}`
    const files = [
      ...launchers(false),
      { path: "node", bytes: Buffer.from('#!/bin/sh\n[ "$BROKEN" ] && exit 1\necho "ran $*"\n'), isProgram: true },
      { path: "lib/dist/dex.js", bytes: Buffer.alloc(0) },
      ...["LICENSE", "NODE_LICENSE"].map((path) => ({ path, bytes: Buffer.from(path) })),
    ]
    return [
      `${name}.${system.startsWith("win32") ? "zip" : "tar.gz"}`,
      tarGz(files.map((file) => ({ ...file, path: `${name}/${file.path}` }))),
    ] as const
  }),
)

/** A release in a folder, and a home to install it in. */
function release() {
  const folder = tempDir()
  const home = tempDir()
  const sums = Object.entries(archives).map(([name, bytes]) => `${sha256(bytes)}  ${name}\n`)
  for (const [name, bytes] of Object.entries({ ...archives, ...channelFiles(ROOT, archives) }))
    writeFileSync(join(folder, name), bytes)
  writeFileSync(join(folder, "SHA256SUMS"), sums.join(""))
  const install = (env: Record<string, string> = {}, ...args: string[]) => {
    const all = { HOME: home, PATH: "/usr/bin:/bin", DEX_DOWNLOADS: `file://${folder}`, ...env }
    const { status, stdout, stderr } = spawnSync("sh", [join(folder, "install.sh"), ...args], {
      env: all,
      encoding: "utf8",
    })
    return { status, text: stdout + stderr }
  }
  return { folder, home, install, programs: join(home, ".local/share/dexctx"), link: join(home, ".local/bin/dex") }
}
const system = `${process.platform}-${process.arch}`
const canInstall = !isWindows && Object.hasOwn(SYSTEMS, system)

test.skipIf(!canInstall)("install.sh installs, replaces an older version and removes everything again", () => {
  const { home, install, programs, link } = release()
  mkdirSync(join(programs, "dex-0.0.1-x/lib/dist"), { recursive: true })
  writeFileSync(join(programs, "dex-0.0.1-x/lib/dist/dex.js"), "")
  mkdirSync(join(programs, "dex-of-mine"))
  expect(install()).toMatchObject({ status: 0, text: expect.stringContaining(`dex ${version} is installed`) })
  expect(install().status).toBe(0)
  expect(readdirSync(programs).sort()).toEqual([`dex-${version}-${system}`, "dex-of-mine"])
  expect(execFileSync(link, ["a b"], { encoding: "utf8" })).toMatch(/^ran .*lib\/dist\/dex\.js a b\n$/)
  execFileSync("rmdir", [join(programs, "dex-of-mine")])
  expect(install({}, "--uninstall").status).toBe(0)
  expect(readdirSync(join(home, ".local"), { recursive: true }).sort()).toEqual(["bin", "share"])
})

test.skipIf(!canInstall)(
  "install.sh installs nothing whose checksum is wrong or missing, and replaces no other program",
  () => {
    const { folder, install, programs, link } = release()
    const archive = join(folder, `dex-${version}-${system}.tar.gz`)
    const genuine = readFileSync(archive)
    const sums = readFileSync(join(folder, "SHA256SUMS"), "utf8")
    const isUntouched = () => !existsSync(link) && (!existsSync(programs) || readdirSync(programs).length === 0)
    writeFileSync(archive, Buffer.concat([genuine, Buffer.from("more")]))
    expect(install()).toMatchObject({
      status: 1,
      text: expect.stringContaining("wrong SHA-256. Nothing was installed"),
    })
    expect(isUntouched()).toBe(true)
    writeFileSync(archive, genuine)
    for (const listed of [
      "",
      sums.replaceAll("dex-", "other-"),
      sums.replaceAll(/^./gm, "g"),
      sums.replaceAll("  dex-", "  ./dex-"),
    ]) {
      writeFileSync(join(folder, "SHA256SUMS"), listed)
      expect(install()).toMatchObject({ status: 1, text: expect.stringContaining("wrong SHA-256") })
      expect(isUntouched()).toBe(true)
    }
    writeFileSync(join(folder, "SHA256SUMS"), sums)
    expect(install({ BROKEN: "1" })).toMatchObject({
      status: 1,
      text: expect.stringContaining("dex does not start here"),
    })
    expect(isUntouched()).toBe(true)
    expect(install({ DEX_DOWNLOADS: "http://127.0.0.1:9" }).text).toContain("could not be downloaded")
    mkdirSync(join(link, ".."), { recursive: true })
    writeFileSync(link, "mine")
    chmodSync(link, 0o755)
    expect(install()).toMatchObject({ status: 0, text: expect.stringContaining("is another program and stays") })
    expect(readFileSync(link, "utf8")).toBe("mine")
    expect(install({}, "--uninstall").status).toBe(0)
    expect(readFileSync(link, "utf8")).toBe("mine")
  },
)

test("Homebrew, Scoop and the AUR get the address and the checksum of each archive, and none may be missing", () => {
  const files = channelFiles(ROOT, archives)
  const text = (name: string) => files[name]!.toString()
  const sumOf = (name: string, kind = "tar.gz") => sha256(archives[`dex-${version}-${name}.${kind}`]!)
  for (const name of ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"])
    expect(text("dexctx.rb")).toMatch(
      new RegExp(`url "https://.*/v${version}/dex-${version}-${name}\\.tar\\.gz"\\n +sha256 "${sumOf(name)}"`),
    )
  const scoop = JSON.parse(text("dexctx.json")) as { architecture: { "64bit": { url: string; hash: string } } }
  expect(scoop.architecture["64bit"]).toMatchObject({
    url: expect.stringMatching(/win32-x64\.zip$/),
    hash: sumOf("win32-x64", "zip"),
  })
  for (const name of ["PKGBUILD", "SRCINFO.txt"])
    for (const sum of ["linux-x64", "linux-arm64"]) expect(text(name)).toContain(sumOf(sum))
  expect(text("install.sh")).not.toMatch(/@[A-Z]+@/)
  expect(() => channelFiles(ROOT, {})).toThrow("was not made")
})

test.skipIf(process.platform !== "linux")("the AUR's build puts dex, its link and its licences in place", () => {
  const folder = tempDir()
  const sources = join(folder, "src")
  mkdirSync(sources)
  writeFileSync(join(folder, "PKGBUILD"), channelFiles(ROOT, archives).PKGBUILD!)
  writeFileSync(join(folder, "a.tgz"), archives[`dex-${version}-linux-x64.tar.gz`]!)
  execFileSync("tar", ["-xzf", "../a.tgz"], { cwd: sources })
  const packaged = join(folder, "pkg")
  execFileSync("bash", ["-euc", `srcdir=${sources} pkgdir=${packaged}; . ./PKGBUILD; package`], { cwd: folder })
  expect(readlinkSync(join(packaged, "usr/bin/dex"))).toBe("/opt/dexctx/dex")
  expect(execFileSync(join(packaged, "opt/dexctx/dex"), ["x"], { encoding: "utf8" })).toMatch(/^ran /)
  expect(readdirSync(join(packaged, "usr/share/licenses/dexctx-bin")).sort()).toEqual(["LICENSE", "NODE_LICENSE"])
})
