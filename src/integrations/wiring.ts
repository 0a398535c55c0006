import { join, sep } from "node:path"
import { structuredPatch } from "diff"
import type { Machine } from "../agents/kit/connector.ts"
import type { WantedFile } from "../agents/kit/wiring.ts"
import { agents } from "../agents/registry.ts"
import type { SourceId } from "../core/conversation.ts"
import { withoutUndefined } from "../core/defined.ts"
import { DexError, diskError } from "../core/error.ts"
import { redactText } from "../redact/redact.ts"
import { isInstalled, loadWirings, missingProgram, resolveAgents } from "./agents.ts"
import { EditProblem } from "./edit.ts"
import { foldersToMake, readEditable, removeFile, saveBackup, sha256, writeText } from "./files.ts"
import { binOf, launcherFiles, type Program } from "./launcher.ts"
import { type FilePlan, planAdding, planKeeping, planRemoving } from "./plan.ts"
import {
  type AdditionsRecord,
  type FileAdditions,
  hasPrivateAnswer,
  hooksChoice,
  readRecord,
  recordHooksChoice,
  usersOf,
  writeRecord,
} from "./record.ts"

export type WiringContext = { machine: Machine; dexHome: string; program: Program; now: number }

type WiringReport = {
  agents: { agent: SourceId; title: string; found: boolean; absent?: string; trust?: string; note?: string }[]
  files: FileChange[]
  /** True if nothing was changed yet, because the changes must be confirmed first. */
  asked: boolean
  /** When installing: true if agents' hooks call dex. */
  hooks?: boolean
  /** When installing: true if a person was asked which projects are private. */
  private_asked?: boolean
  /** When uninstalling: true if an entry that was changed, and therefore stays, still starts the launcher. */
  launcher_kept?: boolean
}
export type FileChange = {
  agent: SourceId | "dex"
  path: string
  change: "none" | "create" | "edit" | "remove" | "problem"
  diff: string
  problem?: string
  note?: string
  backup?: string
}

const NPX_NOTE =
  "dex runs from npm's cache, which npm may empty. To install it permanently: npm install -g dexctx, then dex install again."

/** Adds dex to the named agents, or to all agents on this machine. Without `yes` it only describes the changes. */
export async function wireAgents(
  context: WiringContext,
  names: readonly string[],
  yes: boolean,
  hooks: boolean | undefined = undefined,
): Promise<WiringReport> {
  const { machine, dexHome, program } = context
  const namedAgents = resolveAgents(names)
  const agentsWithState = (await loadWirings()).map((wiring) => ({ wiring, found: isInstalled(wiring, machine) }))
  const missing = agentsWithState.filter(({ wiring, found }) => namedAgents.includes(wiring.agent) && !found)
  if (missing.length > 0) {
    const { wiring } = missing[0]!
    const { paths, program: binary } = wiring.signs(machine)
    throw new DexError(
      "not_found",
      `${wiring.title} is not on this machine: there is no ${paths.join(", no ")}${binary ? ` and no \`${binary}\` on the path` : ""}. Start it once, then run this again.`,
    )
  }
  const chosenAgents = agentsWithState.filter(
    ({ wiring, found }) => found && (namedAgents.length === 0 || namedAgents.includes(wiring.agent)),
  )
  const wantsHooks = hooks ?? hooksChoice(recordFile(dexHome))?.wanted ?? true
  const fullBin = binOf(dexHome, machine, program.node)
  const { hook, ...binWithoutHook } = fullBin
  const bin = wantsHooks ? fullBin : binWithoutHook
  const record = readRecord(recordFile(dexHome))
  const launchers = chosenAgents.length > 0 ? launcherFiles(bin, program, machine) : []
  const npxNote = /[\\/]_npx[\\/]/.test(program.script) && { note: NPX_NOTE }
  const plans: FilePlan[] = [
    ...launchers.map((file, i) => ({ ...planAdding("dex", file, record), ...(i === 0 && npxNote) })),
    ...planFiles(
      chosenAgents.flatMap(({ wiring }) => wiring.files(machine, bin).map((file) => ({ agent: wiring.agent, file }))),
      record,
    ),
  ]
  const formerFiles = new Set(chosenAgents.flatMap(({ wiring }) => wiring.formerFiles?.(machine) ?? []))
  plans.push(
    ...noLongerWanted(record, plans)
      .filter(
        ([path, { agent }]) => formerFiles.has(path) || (!wantsHooks && (agent !== "dex" || namedAgents.length === 0)),
      )
      .map(([path, added]) => planRemoving(path, added, fullBin)),
  )
  const outcome = carryOutPlans(context, plans, yes)
  if (yes && chosenAgents.length > 0) recordHooksChoice(recordFile(dexHome), wantsHooks, context.now)
  return {
    agents: agentsWithState
      .filter(({ wiring }) => namedAgents.length === 0 || namedAgents.includes(wiring.agent))
      .map(({ wiring, wiring: { agent, title, trust, note }, found }) => ({
        agent,
        title,
        found,
        ...(found && absentField(missingProgram(wiring, machine))),
        trust: found ? trust : undefined,
        ...(found && noteField(note?.(machine, bin))),
      })),
    ...outcome,
    hooks: wantsHooks,
    private_asked: hasPrivateAnswer(recordFile(dexHome)),
  }
}

/** Removes dex's additions from the named agents, or from all agents. The launchers are removed with the last agent. */
export function unwireAgents(context: WiringContext, names: readonly string[], yes: boolean): WiringReport {
  const namedAgents = resolveAgents(names)
  const record = readRecord(recordFile(context.dexHome))
  const bin = binOf(context.dexHome, context.machine, context.program.node)
  const isSelected = (agent: SourceId | "dex") =>
    agent !== "dex" && (namedAgents.length === 0 || namedAgents.includes(agent))
  const hasOtherAgents = Object.values(record).some((added) =>
    usersOf(added).some((agent) => agent !== "dex" && !isSelected(agent)),
  )
  const plans = Object.entries(record)
    .filter(([, added]) => (added.agent === "dex" ? !hasOtherAgents : usersOf(added).some(isSelected)))
    .map(([path, added]) => {
      const [agent, ...shared_with] = usersOf(added).filter(
        (user): user is SourceId => user !== "dex" && !isSelected(user),
      )
      return agent === undefined ? planRemoving(path, added, bin) : planKeeping(path, { ...added, agent, shared_with })
    })
    // In reverse order, so that the launchers and the folders that were created first are removed last.
    .reverse()
  const isLauncherNeeded = plans.some(({ needs_launcher }) => needs_launcher)
  const keepsLaunchers =
    isLauncherNeeded || plans.some(({ agent, problem }) => agent !== "dex" && problem !== undefined)
  const wired = new Set(Object.values(record).flatMap(usersOf).filter(isSelected))
  return {
    agents: agents
      .filter(({ source }) => wired.has(source))
      .map(({ source, name }) => ({ agent: source, title: name, found: true })),
    // The launcher stays for agents that still start it.
    ...carryOutPlans(context, keepsLaunchers ? plans.filter(({ agent }) => agent !== "dex") : plans, yes),
    launcher_kept: isLauncherNeeded || undefined,
  }
}

/** Plans what the agents want. If several want the same file, it is added once, for all of them. */
function planFiles(wanted: { agent: SourceId; file: WantedFile }[], record: AdditionsRecord): FilePlan[] {
  const paths = [...new Set(wanted.map(({ file }) => file.path))]
  return paths.map((path) => {
    const wantedHere = wanted.filter(({ file }) => file.path === path)
    const recorded = record[path]
    const [agent, ...shared_with] = new Set([
      ...(recorded ? (usersOf(recorded) as SourceId[]) : []),
      ...wantedHere.map(({ agent }) => agent),
    ])
    const plan = planAdding(agent!, wantedHere[0]!.file, record)
    return shared_with.length === 0 || !plan.added ? plan : { ...plan, added: { ...plan.added, shared_with } }
  })
}

/** The recorded files of the planned agents that are not part of the plans. */
function noLongerWanted(record: AdditionsRecord, plans: FilePlan[]): [path: string, added: FileAdditions][] {
  const wantedPaths = new Set(plans.map(({ path }) => path))
  const agents = new Set(plans.map(({ agent }) => agent))
  return Object.entries(record).filter(([path, { agent }]) => !wantedPaths.has(path) && agents.has(agent))
}

function absentField(absent: string | undefined): { absent?: string } {
  return absent === undefined ? {} : { absent }
}

function noteField(note: string | undefined): { note?: string } {
  return note === undefined ? {} : { note }
}

export function recordFile(dexHome: string): string {
  return join(dexHome, "integrations.json")
}

function carryOutPlans(context: WiringContext, plans: FilePlan[], yes: boolean): Pick<WiringReport, "files" | "asked"> {
  const hasChanges = plans.some((plan) => changeOf(plan) !== "none" && changeOf(plan) !== "problem")
  const needsYes = hasChanges && !yes
  return { files: plans.map((plan) => (needsYes ? describePlan(plan) : carryOutFile(context, plan))), asked: needsYes }
}

/**
 * Carries out the plan for a file. The record lists each file and its folders before they are written, so that uninstall finds
 * everything even after a crash.
 */
function carryOutFile(context: WiringContext, plan: FilePlan): FileChange {
  const change = describePlan(plan)
  if (change.change === "problem") return change
  const file = recordFile(context.dexHome)
  const record = readRecord(file)
  const recorded = record[plan.path]
  try {
    if (readEditable(plan.path) !== plan.before) throw new EditProblem("changed meanwhile. Run this again")
    const backups = join(context.dexHome, "backups")
    const isOurs =
      plan.agent === "dex" || (plan.after === undefined && sha256(plan.before ?? "") === recorded?.after_sha256)
    const backup =
      plan.before !== plan.after && plan.before !== undefined && !isOurs
        ? saveBackup(backups, plan, plan.before, context.now)
        : undefined
    if (plan.added) {
      const newFolders = plan.after === plan.before ? [] : foldersToMake(plan.path)
      record[plan.path] = {
        ...plan.added,
        made_folders:
          newFolders.length > 0
            ? newFolders.filter((folder) => !`${context.dexHome}${sep}`.startsWith(folder + sep))
            : (recorded?.made_folders ?? []),
        backup: backup ?? recorded?.backup,
      }
      writeRecord(file, record)
      if (plan.after !== plan.before) writeText(plan.path, plan.after!, plan.executable)
    } else {
      if (plan.after === undefined) removeFile(plan.path, recorded?.made_folders ?? [])
      else if (plan.after !== plan.before) writeText(plan.path, plan.after)
      delete record[plan.path]
      writeRecord(file, record)
    }
    return { ...change, ...withoutUndefined({ backup }) }
  } catch (error) {
    if (!(error instanceof EditProblem)) throw error
    if (recorded) record[plan.path] = recorded
    else delete record[plan.path]
    writeRecord(file, record)
    // A full disk affects all other files too, so it is reported once for all of them.
    if (diskError(error.cause, plan.path, () => false)) throw diskFullProblem(plan.path, error)
    return { ...change, change: "problem", problem: `${plan.path} ${error.message}.` }
  }
}

function diskFullProblem(path: string, cause: EditProblem): DexError {
  return new DexError(
    "disk_full",
    `${path} ${cause.message}. This file was not changed. Free some space and run this again; files that were already written stay.`,
    { cause },
  )
}

function describePlan(plan: FilePlan): FileChange {
  const { agent, path, before, after, problem, note } = plan
  return {
    agent,
    path,
    change: changeOf(plan),
    // The diff is redacted, because settings may contain keys.
    diff: problem === undefined ? unifiedDiff(path, before, after, redactText) : "",
    problem,
    note,
  }
}

function changeOf({ before, after, problem }: FilePlan): FileChange["change"] {
  if (problem !== undefined) return "problem"
  if (before === after) return "none"
  if (before === undefined) return "create"
  return after === undefined ? "remove" : "edit"
}

const CONTEXT_LINES = 3

/** A unified diff; empty if nothing differs. `transformLine` may hide secrets. */
function unifiedDiff(
  path: string,
  before: string | undefined,
  after: string | undefined,
  transformLine: (line: string) => string = (line) => line,
): string {
  if (before === after) return ""
  const { hunks } = structuredPatch(path, path, before ?? "", after ?? "", "", "", { context: CONTEXT_LINES })
  const lines = [`--- ${before === undefined ? "/dev/null" : path}`, `+++ ${after === undefined ? "/dev/null" : path}`]
  for (const hunk of hunks) {
    lines.push(`@@ -${range(hunk.oldStart, hunk.oldLines)} +${range(hunk.newStart, hunk.newLines)} @@`)
    for (const line of hunk.lines)
      lines.push(line.startsWith("\\") ? line : line.slice(0, 1) + transformLine(line.slice(1).replace(/\r$/, "")))
  }
  return `${lines.join("\n")}\n`
}

/** The range of a hunk. An empty range refers to the line before it. */
function range(start: number, count: number): string {
  return `${count === 0 ? start - 1 : start},${count}`
}
