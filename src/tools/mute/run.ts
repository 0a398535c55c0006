import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { isFolder } from "../../core/look-at.ts"
import { KINDS } from "../../core/suggestion.ts"
import { createProjectFinder } from "../../git/project.ts"
import type { Suggestions } from "../../store/suggestions/suggestions.ts"
import type { Dex } from "../context.ts"
import { folderNamed } from "../resolve.ts"
import type { MuteInput } from "./mute.ts"

export async function run(dex: Dex, input: MuteInput) {
  if (input.what === undefined && input.off)
    throw new DexError(
      "usage",
      "What should be turned on again? dex suggest --mute <kind|folder> --off. `dex suggest --mute --list` lists what is muted.",
    )
  const suggestions = await dex.suggestions()
  const named = input.what === undefined || input.list ? undefined : await muteTarget(dex, suggestions, input.what)
  const before = suggestions.mutes()
  if (named && input.off) suggestions.unmute(named.type, named.name)
  else if (named) suggestions.mute(named.type, named.name, dex.now())
  const after = suggestions.mutes()
  return {
    changed: named && before.length !== after.length,
    name: named?.name,
    mutes: after.map(({ type, name, at }) => ({ type, name, since: isoDate(at) })),
  }
}

type MuteTarget = { type: "kind" | "project"; name: string }

async function muteTarget(dex: Dex, suggestions: Suggestions, what: string): Promise<MuteTarget> {
  const typed = what.toLowerCase().replaceAll("-", "_")
  const kind = KINDS.find((name) => [name, `${name}s`, `${name}es`].includes(typed))
  if (kind) return { type: "kind", name: kind }
  const folder = folderNamed(dex, what)
  if (isFolder(folder)) return { type: "project", name: createProjectFinder()(folder) }
  // The folder of a known project may no longer exist.
  const known = dex.hasHistory() ? (await (await dex.store()).projects()).map(({ path }) => path) : []
  const muted = suggestions.mutes().flatMap(({ type, name }) => (type === "project" ? [name] : []))
  if ([...known, ...muted].includes(folder)) return { type: "project", name: folder }
  throw new DexError(
    "usage",
    `"${what}" is neither a kind (${KINDS.join(", ")}) nor a folder. For a project, name its folder: dex suggest --mute .`,
  )
}
