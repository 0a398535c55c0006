import { existsSync } from "node:fs"
import type { Home } from "../../config/home.ts"
import { loadSettings } from "../../config/load.ts"
import { writeSetting } from "../../config/write.ts"
import { hooksChoice } from "../../integrations/record.ts"
import { recordFile } from "../../integrations/wiring.ts"
import { paint, safeLine, type Terminal, wrap } from "../../render/terminal.ts"
import { many, when } from "../../render/words.ts"
import type { StoredSuggestion, Suggestions } from "../../store/suggestions/suggestions.ts"
import { asTyped } from "../print/words.ts"

/** How long hooks only record what they would have suggested, in milliseconds. */
const RECORDING_ONLY_MS = 7 * 86_400_000
const MAX_SHOWN = 10

type RecordingState = {
  home: Home
  env: Record<string, string | undefined>
  suggestions(): Promise<Suggestions>
  now: number
}
type AskToSpeakOptions = RecordingState & { terminal: Terminal; say(line?: string): void }

/**
 * The suggestions that dex only recorded. Undefined if there is nothing to ask: in the first week, if hooks or suggestions are
 * turned off, and after the person has answered.
 */
export async function recordedSuggestions({
  home,
  env,
  suggestions,
  now,
}: RecordingState): Promise<StoredSuggestion[] | undefined> {
  const choice = hooksChoice(recordFile(home.dir))
  const { settings } = loadSettings({ file: home.config, env })
  if (!choice?.wanted || settings["proactive.mode"] !== undefined || !settings["proactive.enabled"]) return undefined
  if (now - choice.at < RECORDING_ONLY_MS || !existsSync(home.suggest)) return undefined
  return (await suggestions()).list({ would: true, from: choice.at, limit: 1_000 })
}

/**
 * After the first week: shows what dex would have suggested to agents and, on a terminal, asks whether it may make such
 * suggestions from now on.
 */
export async function askToSpeak({ terminal, say, ...state }: AskToSpeakOptions): Promise<void> {
  const { home } = state
  const suggestions = await recordedSuggestions(state)
  if (suggestions === undefined) return
  say()
  if (suggestions.length === 0)
    return say("In its first week dex would have suggested nothing to your agents. It keeps recording.")
  say(paint(terminal, "bold", `dex would have made a suggestion ${many(suggestions.length, "time")}`))
  for (const suggestion of suggestions.slice(0, MAX_SHOWN))
    for (const line of wrap(suggestionLine(suggestion), terminal.columns - 4)) say(`  ${line}`)
  if (suggestions.length > MAX_SHOWN) say(`  and ${many(suggestions.length - MAX_SHOWN, "other")}`)
  if (!process.stdin.isTTY || !terminal.interactive)
    return say(
      asTyped(
        "To let dex make suggestions: dex config set proactive.mode speak (or log, to only record them).",
        terminal,
      ),
    )
  const { confirm, isCancel } = await import("@clack/prompts")
  const isAllowed = await confirm({
    message: "Let dex make such suggestions to your agents from now on?",
    output: process.stderr,
  })
  if (isCancel(isAllowed)) return
  writeSetting(home.config, "proactive.mode", isAllowed ? "speak" : "log")
  const outcome = isAllowed
    ? "dex will make suggestions from now on. `dex suggest --mute <kind|project>` turns some of them off, and DEX_QUIET=1 all of them."
    : "dex will only record them. If you change your mind: dex config set proactive.mode speak"
  say(asTyped(outcome, terminal))
}

function suggestionLine({ moment, items }: StoredSuggestion): string {
  const [first] = items
  const moreText = items.length > 1 ? ` (and ${many(items.length - 1, "other thing")})` : ""
  return `${when(new Date(moment.at).toISOString())}  ${moment.event.replaceAll("_", " ")}: ${safeLine(`${first?.kind}: ${first?.title}. ${first?.reason}`)}${moreText}`
}
