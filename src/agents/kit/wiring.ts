import type { Machine } from "./connector.ts"

/** How dex is given to a coding agent. */
export type Wiring = {
  /** Its folder or file exists, or its program is on the path: where to look. */
  signs(machine: Machine): { paths: string[]; program?: string }
  /** What dex adds, and where. */
  wanted(machine: Machine, bin: Bin): WantedFile[]
  /** What it will then do without asking the person, in words for them. */
  trust?: string
  /** What dex leaves out for this agent and why, and what is still to be done by hand. */
  note?(machine: Machine, bin: Bin): string | undefined
}

/**
 * The programs that agents start: the launcher, one that syncs behind an agent's back, the sub-agent's guard, and the one
 * that agents' hooks ask, where somebody wants those. On Windows they are scripts for this Node.
 */
export type Bin = { dex: string; sync?: string; guard?: string; hook?: string; windows?: { node: string } }

/** What belongs into a JSON file: a property at a path, or an item at the end of the list at a path. */
export type JsonAddition = { type: "property" | "item"; path: string[]; value: unknown }
/** A table of its own, with what its keys say. */
export type TomlAddition = { type: "table"; path: string[]; values: Record<string, TomlValue> }
export type TomlValue = string | boolean | string[]

export type Addition = JsonAddition | TomlAddition | WholeFile
/** A file of dex's own. */
export type WholeFile = { type: "file"; content: string; executable?: boolean }
/** With at least one addition: a file that was made for nothing would be empty, and so not even valid JSON. */
export type WantedFile = { path: string; additions: Addition[]; is?: "subagent" }
