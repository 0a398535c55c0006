import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { DexError } from "../core/error.ts"
import { readBytes } from "../files/read-file.ts"
import { LOCAL_PACKAGE, type LocalPackage, localFolder, localPackage } from "./local-package.ts"

/** The package as it is published: this version, packed, unpacked, and the model's SHA-256. */
const VERSION = "0.1.0"
export const LOCAL_DOWNLOAD_BYTES = 19_700_000
export const LOCAL_DISK_BYTES = 37_400_000
/** The variable with a file that is installed instead: without a network, or one that was built here. */
export const INSTALL_FROM = "DEX_LOCAL_MODEL_PACKAGE"
const MOST_BYTES = 256 << 20
const MODEL_SHA256 = "6d59e86bcc407c6cdd874f1970eaf0386ab0b786b58d6d4473df5577f4f018ce"

/**
 * Installs the package in dex's own folder, with npm and without running anything of it. `from`: a file to install instead
 * of the published package. Whatever goes wrong is a DexError, and then nothing is left of it.
 */
export async function installLocal(
  dexDir: string,
  from: string | undefined,
  signal?: AbortSignal,
): Promise<LocalPackage> {
  const folder = localFolder(dexDir)
  const isNew = !existsSync(folder)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const manifest = join(folder, "package.json")
    if (!existsSync(manifest)) writeFileSync(manifest, '{ "private": true }\n', { mode: 0o600 })
    await npmInstall(folder, from ?? `${LOCAL_PACKAGE}@${VERSION}`, signal)
    const found = localPackage(dexDir)
    if (!found)
      throw new DexError("embed_install", "npm installed something that is not the local model. Nothing was changed.")
    checkModel(join(dirname(found.entry), "model.onnx"))
    return found
  } catch (error) {
    if (isNew) rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

/** A package that was made for a test has a model of another kind. */
function checkModel(file: string): void {
  if (!existsSync(file)) return
  const sum = createHash("sha256").update(readBytes(file, MOST_BYTES)).digest("hex")
  if (sum === MODEL_SHA256) return
  throw new DexError(
    "embed_install",
    `The model that was installed is not the one that was published: its SHA-256 is ${sum}, not ${MODEL_SHA256}. It was not used.`,
  )
}

async function npmInstall(folder: string, spec: string, signal?: AbortSignal): Promise<void> {
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
  const [command, ...first] = npmCommand()
  const stop = signal ? { signal } : {}
  const child = spawn(command!, [...first, "install", "--prefix", folder, ...flags, spec], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
    windowsHide: true,
    ...stop,
  })
  let said = ""
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    said = (said + chunk).slice(-8_000)
  })
  const code = await new Promise<number | string | null>((resolve) => {
    child.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    child.on("close", resolve)
  })
  if (code !== 0) throw new DexError("embed_install", `${whyNot(code, said)} Nothing was changed.`)
}

/** npm is a script on Windows, and scripts need a shell there: Node runs its first file instead. */
function npmCommand(): string[] {
  if (process.platform !== "win32") return ["npm"]
  const beside = join(dirname(process.execPath), "node_modules", "npm", "bin", "npm-cli.js")
  return existsSync(beside) ? [process.execPath, beside] : ["npm.cmd"]
}

function whyNot(code: number | string | null, said: string): string {
  if (code === "ENOENT" || code === "EINVAL")
    return "npm was not found, and the local model is installed with it. Install Node.js with npm, then try again."
  if (code === "ABORT_ERR") return "The installation was stopped."
  if (/\bE404\b/.test(said)) return `npm's registry has no ${LOCAL_PACKAGE} ${VERSION}.`
  if (/\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED)\b/.test(said))
    return "npm's registry could not be reached. The local model is downloaded once; check the network, then try again."
  if (/\bEINTEGRITY\b/.test(said)) return "What npm downloaded is not what was published (its checksum is wrong)."
  if (/\bENOSPC\b/.test(said)) return "The disk is full."
  const line = said
    .split("\n")
    .map((one) => one.replace(/^npm (error|ERR!)\s*/, "").trim())
    .find((one) => one !== "" && !one.startsWith("code "))
  return `npm could not install the local model${line ? `: ${line.replace(/\.?$/, ".")}` : "."}`
}
