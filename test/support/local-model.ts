import { hash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { onTestFinished } from "vitest"
import { LOCAL_PACKAGE, localFolder } from "../../src/embed/local-package.ts"
import { isAlive } from "./processes.ts"

// A package like dexctx-embed-local with a weak model that hashes words. Each process that loads it records its pid.

type Model = { version?: string; revision?: string; broken?: boolean; synonyms?: Record<string, string> }

export function writeLocalModel(dexDir: string, model: Model = {}): void {
  writePackage(join(localFolder(dexDir), "node_modules", LOCAL_PACKAGE), localFolder(dexDir), model)
  onTestFinished(() => endHelpers(dexDir))
}

/** `notes` is the folder in which processes that load the package record their pids. */
export function writePackage(folder: string, notes: string, model: Model = {}): void {
  const { version = "1.0.0", revision = "1", broken = false, synonyms = {} } = model
  mkdirSync(join(folder, "dist"), { recursive: true })
  mkdirSync(notes, { recursive: true, mode: 0o700 })
  const dex = { model: "words", revision, dims: DIMS }
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: LOCAL_PACKAGE, version, type: "module", files: ["dist"], dex }),
  )
  writeFileSync(join(folder, "dist/index.js"), codeOf(join(notes, "loads"), broken, synonyms))
  pin(folder)
}

/** Makes processes that this one starts from now on accept the package as a published one. */
function pin(folder: string): void {
  const files = ["package.json", "dist/index.js"].map((name) => [
    name,
    hash("sha512", readFileSync(join(folder, name)), "base64"),
  ])
  const known = JSON.parse(process.env.STAND_IN_FILES ?? "[]") as object[]
  process.env.STAND_IN_FILES = JSON.stringify([...known, Object.fromEntries(files)])
  const loader = pathToFileURL(join(import.meta.dirname, "pin-stand-in.mjs")).href
  if (!process.env.NODE_OPTIONS?.includes(loader)) process.env.NODE_OPTIONS = `--import=${loader}`
}

/** The processes that have loaded the model, in order. */
export function loadsOf(dexDir: string): number[] {
  const file = join(localFolder(dexDir), "loads")
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").map(Number) : []
}

function endHelpers(dexDir: string): void {
  for (const pid of loadsOf(dexDir)) if (isAlive(pid)) process.kill(pid, "SIGKILL")
}

const DIMS = 64

function codeOf(loads: string, broken: boolean, synonyms: Record<string, string>): string {
  return `import { createHash } from "node:crypto"
import { appendFileSync } from "node:fs"
const synonyms = ${JSON.stringify(synonyms)}
export async function openModel() {
  appendFileSync(${JSON.stringify(loads)}, process.pid + "\\n")
  if (${broken}) throw new Error("the model's file is cut short")
  return { embed: async (texts) => texts.map(vectorOf) }
}
function vectorOf(text) {
  const vector = new Float32Array(${DIMS})
  for (const word of text.toLowerCase().match(/[a-z0-9]+/g) ?? ["nothing"]) {
    const hash = createHash("sha256").update(synonyms[word] ?? word).digest()
    for (let i = 0; i < 8; i++) vector[hash[i] % ${DIMS}] += hash[16 + i] & 1 ? 1 : -1
  }
  const length = Math.hypot(...vector) || 1
  return vector.map((value) => value / length)
}
`
}
