import { execFileSync } from "node:child_process"
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, statSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"

// Runs the steps of hub/Dockerfile without Docker: each stage is a folder, which replaces / in the steps.
// With --modules FOLDER, the packages come from there instead of `npm ci`. Prints the image's folder and settings as JSON.

const ROOT = fileURLToPath(new URL("../..", import.meta.url))

/** @typedef {{ folder: string, env: Record<string, string>, user?: string, health?: string[], entrypoint: string[], command: string[] }} Image */

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const at = process.argv.indexOf("--modules")
  console.log(JSON.stringify(runImageSteps(at > 0 ? process.argv[at + 1] : undefined), null, 2))
}

/**
 * @param {string} [modules]
 * @returns {Image}
 */
export function runImageSteps(modules) {
  const work = mkdtempSync(join(tmpdir(), "dex-hub-image-"))
  chmodSync(work, 0o755)
  /** @type {Map<string, string>} */
  const stages = new Map()
  /** @type {Image} */
  let image = { folder: work, env: {}, entrypoint: [], command: [] }
  let cwd = ""
  const inImage = (/** @type {string} */ path) => (path.startsWith("/") ? join(image.folder, path) : join(cwd, path))
  for (const { word, rest } of instructionsOf(readFileSync(join(ROOT, "hub/Dockerfile"), "utf8")))
    switch (word) {
      case "FROM": {
        const name = / AS (\w+)$/.exec(rest)?.[1] ?? "image"
        image = { folder: join(work, name), env: {}, entrypoint: [], command: [] }
        stages.set(name, image.folder)
        cwd = image.folder
        mkdirSync(join(image.folder, "usr/local/bin"), { recursive: true })
        break
      }
      case "WORKDIR":
        cwd = inImage(rest)
        mkdirSync(cwd, { recursive: true })
        break
      case "COPY": {
        const [, stage, paths] = /^(?:--from=(\w+) )?(.*)$/.exec(rest) ?? []
        const names = (paths ?? "").split(" ")
        const to = names.pop() ?? ""
        for (const from of names)
          copy(join(stage ? (stages.get(stage) ?? "") : ROOT, from), inImage(to), to.endsWith("/"))
        break
      }
      case "RUN":
        if (rest.startsWith("npm ci") && modules) symlinkSync(resolve(modules), join(cwd, "node_modules"))
        else run(rest, image.folder, cwd)
        break
      case "USER":
        image.user = rest
        break
      case "ENV":
        for (const [, name, value] of rest.matchAll(/(\w+)=(\S+)/g)) image.env[name ?? ""] = value ?? ""
        break
      case "HEALTHCHECK":
        image.health = JSON.parse(rest.slice(rest.indexOf("CMD ") + 4))
        break
      case "ENTRYPOINT":
        image.entrypoint = JSON.parse(rest)
        break
      case "CMD":
        image.command = JSON.parse(rest)
        break
      case "VOLUME":
      case "EXPOSE":
      case "ARG": // names the base image
        break
      default:
        throw new Error(`hub/Dockerfile has ${word}, which this script does not know.`)
    }
  return image
}

/** @param {string} text */
function instructionsOf(text) {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => ({
      word: line.slice(0, line.indexOf(" ")),
      rest: line.slice(line.indexOf(" ") + 1),
    }))
}

/**
 * A folder's contents go into `to`, a file becomes `to` or goes into it. Skips what hub/Dockerfile.dockerignore lists.
 * @param {string} from
 * @param {string} to
 * @param {boolean} isInto
 */
function copy(from, to, isInto) {
  const isFolder = statSync(from).isDirectory()
  const isBuilt = basename(from) === "dist"
  mkdirSync(isFolder ? to : join(to, isInto ? "." : ".."), { recursive: true })
  cpSync(
    from,
    isFolder || !(isInto || statSync(to, { throwIfNoEntry: false })?.isDirectory()) ? to : join(to, basename(from)),
    {
      recursive: true,
      filter: (path) => isBuilt || !["node_modules", "dist", "test"].includes(basename(path)) || path === from,
    },
  )
}

/**
 * @param {string} command
 * @param {string} folder
 * @param {string} cwd
 */
function run(command, folder, cwd) {
  // Only root may change the owner of a file.
  const allowed = process.getuid?.() === 0 ? command : command.replace(/chown \S+ \S+ && /, "")
  const here = allowed.replace(/ \//g, ` ${folder}/`).replace(/^node /, `"${process.execPath}" `)
  execFileSync("sh", ["-c", here], { cwd, stdio: ["ignore", "ignore", "inherit"] })
}
