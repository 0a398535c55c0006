import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { join, resolve } from "node:path"
import { isoDate } from "../core/dates.ts"
import { DexError } from "../core/error.ts"
import { KINDS } from "../core/suggestion.ts"
import { createProjectFinder } from "../git/project.ts"
import type { Dex } from "./context.ts"

export async function run(dex: Dex, input: { what?: string; undo?: boolean; list?: boolean }) {
  if (input.what === undefined && input.undo)
    throw new DexError(
      "usage",
      "Say what is to speak again: dex mute <kind|folder> --undo. `dex mute --list` lists it.",
    )
  const suggestions = await dex.suggestions()
  const named = input.what === undefined || input.list ? undefined : meant(dex, input.what)
  const before = suggestions.mutes()
  if (named && input.undo) suggestions.unmute(named.type, named.name)
  else if (named) suggestions.mute(named.type, named.name, dex.now())
  const after = suggestions.mutes()
  return {
    ...(named && { changed: before.length !== after.length, name: named.name }),
    mutes: after.map(({ type, name, at }) => ({ type, name, since: isoDate(at) })),
  }
}

function meant(dex: Dex, what: string): { type: "kind" | "project"; name: string } {
  const kind = KINDS.find((name) => name === what.toLowerCase().replaceAll("-", "_").replace(/s$/, ""))
  if (kind) return { type: "kind", name: kind }
  const folder = resolve(dex.cwd, what.replace(/^~(?=$|[\\/])/, dex.machine.home || homedir()))
  if (!existsSync(folder) && !/[\\/.~]/.test(what))
    throw new DexError(
      "usage",
      `"${what}" is neither a kind (${KINDS.join(", ")}) nor a folder here. For a project, name its folder: dex mute ${join("~", "code", what)}`,
    )
  return { type: "project", name: createProjectFinder()(folder) }
}
