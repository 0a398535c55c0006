import { isSamePath } from "../core/path-key.ts"
import { type ItemKind, KINDS } from "../core/suggestion.ts"
import { type Settings, splitNames } from "./settings.ts"

/** Whether DEX_QUIET is set, which turns off everything that dex does unasked. */
export function isQuiet(env: Record<string, string | undefined>): boolean {
  return env.DEX_QUIET !== undefined && !["", "0", "false"].includes(env.DEX_QUIET)
}

type Mutes = readonly { type: "kind" | "project"; name: string }[]

/** The kinds that may be shown unasked in a project: none if dex should be silent. */
export function spokenKinds(
  settings: Settings,
  mutes: Mutes,
  project: string,
  platform = process.platform,
): Set<ItemKind> {
  return settings["proactive.enabled"] ? wantedKinds(settings, mutes, project, platform) : new Set()
}

/** The kinds that the user wants to see in a project, including on request: none if the project is muted. */
export function wantedKinds(
  settings: Settings,
  mutes: Mutes,
  project: string,
  platform = process.platform,
): Set<ItemKind> {
  if (isMuted(mutes, project, platform)) return new Set()
  const muted = mutes.filter(({ type }) => type === "kind").map(({ name }) => name)
  const off = new Set([...splitNames(settings["proactive.off"]), ...muted])
  return new Set(KINDS.filter((kind) => !off.has(kind)))
}

export function isMuted(mutes: Mutes, project: string, platform = process.platform): boolean {
  return mutes.some(({ type, name }) => type === "project" && isSamePath(name, project, platform))
}
