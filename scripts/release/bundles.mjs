import { readFileSync } from "node:fs"
import { join } from "node:path"
import { tarGz, zip } from "./archive.mjs"
import { filesBelow, packageFiles } from "./npm-package.mjs"
import { nodeFor } from "./systems.mjs"

/** Files of installed packages that dex never loads: sources, declarations, and builds for other systems. */
const NOT_LOADED = /^(?:build|debug|deps|src|test)\/|\.(?:map|gyp|d\.c?ts|cjs)$|^README\.md$/

/** Starts dex from its own folder, also through a link and with spaces in the path. It starts no program but Node, so it takes a millisecond. */
const LAUNCHER = `#!/bin/sh
file=$0
case $file in */*) ;; *) file=./$file ;; esac
while [ -L "$file" ]; do
  target=$(readlink "$file")
  case $target in
  /*) file=$target ;;
  *) file=\${file%/*}/$target ;;
  esac
done
here=\${file%/*}
exec "$here/node" "$here/lib/dist/dex.js" "$@"
`
const WINDOWS_LAUNCHER = `@"%~dp0node.exe" "%~dp0lib\\dist\\dex.js" %*\r\n`

/**
 * dex with everything that it loads but Node: the npm package, and the packages that npm would install with it.
 * @param {string} root
 * @param {(prebuilt: string) => boolean} isForSystem
 * @returns {import("./archive.mjs").ArchiveFile[]}
 */
export function programFiles(root, isForSystem) {
  const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  const installed = Object.keys(dependencies).flatMap((name) => {
    const folder = `node_modules/${name}`
    return filesBelow(root, folder)
      .filter((path) => {
        const file = path.slice(folder.length + 1)
        return (
          !NOT_LOADED.test(file) && (!file.startsWith("prebuilds/") || isForSystem(file.slice("prebuilds/".length)))
        )
      })
      .map((path) => ({ path, bytes: readFileSync(join(root, path)) }))
  })
  return [...packageFiles(root), ...installed]
}

/**
 * The archive for a system: unpack it and run \`dex\` in it.
 * @param {string} root
 * @param {import("./systems.mjs").System} system
 */
export function archiveFor(root, system) {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  const isWindows = system.startsWith("win32")
  const { program, licence } = nodeFor(root, system)
  const files = [
    ...programFiles(root, (prebuilt) => prebuilt === `${system}.node`).map((file) => ({
      ...file,
      path: `lib/${file.path}`,
    })),
    ...launchers(isWindows),
    { path: isWindows ? "node.exe" : "node", bytes: program, isProgram: true },
    { path: "LICENSE", bytes: readFileSync(join(root, "LICENSE")) },
    { path: "NODE_LICENSE", bytes: licence },
  ]
  const name = `dex-${version}-${system}`
  const inFolder = files.map((file) => ({ ...file, path: `${name}/${file.path}` }))
  return isWindows ? { name: `${name}.zip`, bytes: zip(inFolder) } : { name: `${name}.tar.gz`, bytes: tarGz(inFolder) }
}

/** @param {boolean} isWindows */
export function launchers(isWindows) {
  return isWindows
    ? [{ path: "dex.cmd", bytes: Buffer.from(WINDOWS_LAUNCHER) }]
    : [{ path: "dex", bytes: Buffer.from(LAUNCHER), isProgram: true }]
}

/**
 * The bundle for programs that install MCP servers (.mcpb), for every system. They bring Node.
 * @param {string} root
 */
export function mcpBundle(root) {
  const manifest = { path: "manifest.json", bytes: readFileSync(join(root, "plugins/mcpb/manifest.json")) }
  return zip([manifest, ...programFiles(root, () => true)])
}
