import {
  completeText,
  type FileState,
  NOTHING_KNOWN,
  type Sighting,
  stateAfter,
  stateOfChange,
  stateOfText,
} from "./file-state.ts"

export type SeenAt = { sighting: Sighting; at: number | undefined }

/** The text that the file has in a commit. */
export type Version = { text: string; at: number; name: string }

export type Recovered = {
  state: FileState
  /** The first of the sightings from which the state follows: nobody else was seen to change the file after it. */
  from: number
  /** The commit from which the lines come that no message shows. */
  base?: Version
  /** The commit that has exactly this text. */
  confirmedBy?: Version
  /** How many texts agree with everything that was seen. If there are several, none of them is chosen. */
  possible: number
}

/**
 * Finds out what the file was after these sightings. The lines that no message shows come from a commit made before, if its text
 * agrees with every line and every line number that was seen. `versions` are the texts of the file in commits, newest first.
 */
export function recoverState(sightings: readonly SeenAt[], versions: readonly Version[]): Recovered {
  const shown = replay(sightings)
  const confirms = new Map(versions.map((version) => [version.text, version]))
  const text = completeText(shown.state)
  if (text !== undefined) return { ...shown, possible: 1, confirmedBy: confirms.get(text) }
  const fits = textsFromCommits(sightings.slice(shown.from), versions)
  // Of several, it is the one that was committed, and rather the one that was committed afterwards.
  const lastAt = sightings.at(-1)?.at ?? 0
  const confirmed = fits.filter(({ text }) => confirms.has(text))
  const committed = confirmed.filter(({ text }) => confirms.get(text)!.at >= lastAt)
  const candidates = [committed, confirmed, fits].find((some) => some.length > 0) ?? []
  const [first] = candidates
  if (!first || candidates.length > 1) return { ...shown, possible: candidates.length }
  const { state, base } = first
  return { state, from: shown.from, base, possible: 1, confirmedBy: confirms.get(first.text) }
}

/** The state that follows from the messages alone, without git. */
function replay(sightings: readonly SeenAt[]): { state: FileState; from: number } {
  let state = NOTHING_KNOWN
  let from = 0
  for (const [i, { sighting }] of sightings.entries()) {
    const next = stateAfter(state, sighting)
    if (next === undefined || sighting.type === "whole") from = i
    state = next ?? freshState(sighting)
  }
  return { state, from }
}

function freshState(sighting: Sighting): FileState {
  if (sighting.type === "change") return stateOfChange(sighting)
  return stateAfter(NOTHING_KNOWN, sighting) ?? NOTHING_KNOWN
}

type Fit = { text: string; state: FileState; base: Version }

/** The different texts that the file may have, each with the newest commit from which it follows. */
function textsFromCommits(sightings: readonly SeenAt[], versions: readonly Version[]): Fit[] {
  const before = sightings[0]?.at ?? Number.POSITIVE_INFINITY
  const fits = new Map<string, Fit>()
  for (const base of versions) {
    if (base.at > before) continue
    let state: FileState | undefined = stateOfText(base.text)
    for (const { sighting } of sightings) state &&= stateAfter(state, sighting)
    const text = state && completeText(state)
    if (state && text !== undefined && !fits.has(text)) fits.set(text, { text, state, base })
  }
  return [...fits.values()]
}
