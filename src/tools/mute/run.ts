import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { isFolder } from "../../core/look-at.ts"
import { KINDS } from "../../core/suggestion.ts"
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
  const target = input.what === undefined || input.list ? undefined : await muteTarget(dex, suggestions, input.what)
  const mutesBefore = suggestions.mutes()
  if (target && input.off) suggestions.unmute(target.type, target.name)
  else if (target) suggestions.mute(target.type, target.name, dex.now())
  const mutesAfter = suggestions.mutes()
  return {
    changed: target && mutesBefore.length !== mutesAfter.length,
    name: target?.name,
    mutes: mutesAfter.map(({ type, name, at }) => ({ type, name, since: isoDate(at) })),
  }
}

type MuteTarget = { type: "kind" | "project"; name: string }

async function muteTarget(dex: Dex, suggestions: Suggestions, what: string): Promise<MuteTarget> {
  const typed = what.toLowerCase().replaceAll("-", "_")
  const kind = KINDS.find((name) => [name, `${name}s`, `${name}es`].includes(typed))
  if (kind) return { type: "kind", name: kind }
  const folder = folderNamed(dex, what)
  if (isFolder(folder)) return { type: "project", name: dex.projectOf(folder) }
  // The folder no longer exists, but it may be that of a known or a muted project.
  const knownProjects = dex.hasHistory() ? (await (await dex.store()).projects()).map(({ path }) => path) : []
  const mutedProjects = suggestions.mutes().flatMap(({ type, name }) => (type === "project" ? [name] : []))
  if ([...knownProjects, ...mutedProjects].includes(folder)) return { type: "project", name: folder }
  throw new DexError(
    "usage",
    `"${what}" is neither a kind (${KINDS.join(", ")}) nor a folder. For a project, name its folder: dex suggest --mute .`,
  )
}
