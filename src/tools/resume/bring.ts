import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Agent } from "../../agents/kit/agent.ts"
import type { BringPlan } from "../../agents/kit/bring.ts"
import { DexError, messageOf } from "../../core/error.ts"
import { readText } from "../../core/read-file.ts"
import { formatRef, siblingRef } from "../../core/ref.ts"
import { type ProgramEnd, runProgram } from "../../headless/run-program.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"

const VERSION_LIMIT_MS = 10_000
const IMPORT_LIMIT_MS = 180_000
const MAX_EXPORT_BYTES = 500_000_000

/** What to do before the agent finds a conversation from a folder, and the conversation's id there. */
export type Bringing = { id: string; plan?: BringPlan }

/** Reads the agent's files, and asks the agent for its version if that decides, but changes nothing. */
export async function bringingOf(dex: Dex, agent: Agent, row: ConversationRow, folder: string): Promise<Bringing> {
  const unchanged = { id: row.ref.id }
  const bring = await agent.bring?.()
  const plan = bring?.plan({ id: row.ref.id, cwds: row.cwds }, realPath(folder), dex.machine)
  if (bring === undefined || plan === undefined) return unchanged
  if (bring.foundSince !== undefined && !(await isOlder(dex, agent, row, bring.foundSince))) return unchanged
  if (plan.type === "files") return { ...unchanged, plan }
  const copy = await (await dex.store()).conversation(siblingRef(row.ref, plan.id))
  return copy === undefined || copy.archived ? { id: plan.id, plan } : { id: plan.id }
}

/**
 * Creates the copy: new files, or what the agent's own import command creates. Changes no existing file. Throws a DexError if that
 * is not possible; then nothing stays, except for what the import command did.
 */
export async function bring(dex: Dex, row: ConversationRow, folder: string, plan: BringPlan): Promise<void> {
  try {
    await (plan.type === "files" ? createFiles(plan) : importCopy(dex, folder, plan))
  } catch (error) {
    throw new DexError(
      "not_copied",
      `The conversation could not be copied: ${messageOf(error).replace(/\.?$/, ".")} A handover works in any folder: dex handover ${formatRef(row.ref)} --to ${row.ref.source} --here`,
      { cause: error },
    )
  }
}

/** Returns the paths of the files that a plan creates, and the agent's commands that it runs. */
export function stepsOf(plan: BringPlan): { files: string[]; commands: string[][] } {
  if (plan.type === "import") return { files: [], commands: [plan.exportCommand, plan.importCommand] }
  return { files: plan.files.map(({ path }) => join(plan.root, path)), commands: [] }
}

function createFiles({ root, files }: Extract<BringPlan, { type: "files" }>): void {
  const created: string[] = []
  try {
    for (const { path, content } of files) {
      createFileBelow(root, path, content())
      created.push(join(root, path))
    }
  } catch (error) {
    for (const path of created) rmSync(path, { force: true })
    throw error
  }
}

async function importCopy(dex: Dex, folder: string, plan: Extract<BringPlan, { type: "import" }>): Promise<void> {
  const temporary = mkdtempSync(join(tmpdir(), "dex-resume-"))
  try {
    const exported = join(temporary, "exported.json")
    createFileBelow(temporary, "exported.json", [])
    await runAgent(dex, folder, plan.exportCommand, exported)
    createFileBelow(temporary, "copy.json", [plan.convert(readText(exported, MAX_EXPORT_BYTES))])
    const imported = await runAgent(dex, folder, [...plan.importCommand, join(temporary, "copy.json")])
    if (!imported.stdout.includes(plan.id)) throw new Error(`${plan.importCommand.join(" ")} did not import it`)
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

/** If a file is given, it receives the output: into a pipe, OpenCode 1.18.33 prints only the first 64 kB of a longer export. */
async function runAgent(
  dex: Dex,
  folder: string,
  [program = "", ...args]: string[],
  file?: string,
): Promise<ProgramEnd> {
  const run = { program, args, folder, input: "", env: dex.machine.env, limitMs: IMPORT_LIMIT_MS }
  const output = file === undefined ? undefined : openSync(file, "a")
  try {
    const end = await runProgram({ ...run, ...(output !== undefined && { outputFile: output }) })
    if (end.code === 0 && end.stopped === undefined) return end
    const reason = end.stderr.trim().split("\n").at(-1) || (end.stopped ?? `exit code ${end.code}`)
    throw new Error(`${program} ${args[0]} failed (${reason})`)
  } finally {
    if (output !== undefined) closeSync(output)
  }
}

/** Whether the installed agent is older than this version. False if it does not say. */
async function isOlder(dex: Dex, agent: Agent, row: ConversationRow, version: string): Promise<boolean> {
  const [program] = agent.resume?.(row.ref.id, row.path) ?? []
  if (program === undefined) return false
  try {
    const run = { program, args: ["--version"], folder: dex.cwd, input: "", env: dex.machine.env }
    const { stdout } = await runProgram({ ...run, limitMs: VERSION_LIMIT_MS })
    const installed = /\d+\.\d+\.\d+/.exec(stdout)?.[0]
    return installed !== undefined && installed.localeCompare(version, "en", { numeric: true }) < 0
  } catch {
    return false // not installed
  }
}

function realPath(folder: string): string {
  try {
    return realpathSync.native(folder)
  } catch {
    return folder // the agent will say what is wrong with it
  }
}

/**
 * Creates a file below a folder that belongs to another program, readable only by the user. The path is relative to `root`. Never
 * replaces anything and never follows a link below `root`. Throws a DexError if the path leads elsewhere, or the system's error,
 * with the code EEXIST if something is already there. Leaves no incomplete file.
 */
export function createFileBelow(root: string, path: string, content: Iterable<string | Buffer>): void {
  const steps = path.split(/[\\/]/)
  if (steps.some((step) => step === "" || step === "." || step === ".." || step.includes("\0")))
    throw new DexError("unsafe_path", `${path} does not lead to a file below ${root}. Nothing was written.`)
  mkdirSync(root, { recursive: true, mode: 0o700 })
  let folder = root
  for (const step of steps.slice(0, -1)) {
    folder = join(folder, step)
    makeFolder(folder)
  }
  const file = join(folder, steps.at(-1)!)
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0)
  const fd = openSync(file, flags, 0o600)
  try {
    for (const piece of content) writeFileSync(fd, piece) // writeFileSync writes all bytes; writeSync may write only some
  } catch (error) {
    closeSync(fd)
    rmSync(file, { force: true })
    throw error
  }
  closeSync(fd)
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
    if (!lstatSync(folder).isDirectory())
      throw new DexError("unsafe_path", `${folder} is a link or a file, not a folder. Nothing was written there.`)
  }
}
