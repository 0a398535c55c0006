import { createDex } from "../app/dex.ts"
import { VERSION } from "../app/version.ts"
import { DexError } from "../core/error.ts"
import { isInstalled, loadWirings, type Wirable } from "../integrations/agents.ts"
import { hooksChoice, readRecord } from "../integrations/record.ts"
import { recordFile } from "../integrations/wiring.ts"
import { isTerminal } from "./confirm-wiring.ts"

type WiringInput = {
  agents: string[]
  yes?: boolean
  check?: boolean
  hooks?: boolean
  speak?: boolean
  no_hooks?: boolean
}

/**
 * Before the changes are worked out, on a terminal: says which agents were found, and asks which of them to connect and
 * whether dex may make suggestions, unless the command line or an earlier run says it.
 */
export async function chooseWiring<I extends WiringInput>(input: I): Promise<I> {
  if (input.yes || input.check || !isTerminal()) return input
  const dex = createDex({ env: process.env, cwd: process.cwd(), version: VERSION })
  try {
    const record = recordFile(dex.home.dir)
    const found = (await loadWirings()).filter((agent) => isInstalled(agent, dex.machine))
    if (found.length === 0) return input
    process.stdout.write(`Found: ${found.map(({ title }) => title).join(", ")}\n`)
    const wired = new Set(Object.values(readRecord(record)).map(({ agent }) => agent))
    const agents = input.agents.length > 0 ? input.agents : await chosenAgents(found, wired)
    const isSaid = [input.hooks, input.speak, input.no_hooks].some((said) => said !== undefined)
    return { ...input, agents, ...(!isSaid && hooksChoice(record) === undefined && (await suggestionsChoice())) }
  } finally {
    dex.close()
  }
}

/** None where all of them are meant. Where all are connected there is nothing to choose. */
async function chosenAgents(found: readonly Wirable[], wired: ReadonlySet<string>): Promise<string[]> {
  const connected = found.map(({ agent }) => agent).filter((agent) => wired.has(agent))
  if (found.length === 1 || connected.length === found.length) return []
  const { multiselect, isCancel } = await import("@clack/prompts")
  const chosen = await multiselect({
    message: "Connect which agents?",
    options: found.map(({ agent, title }) => ({
      value: agent,
      label: title,
      hint: wired.has(agent) ? "connected" : undefined,
    })),
    initialValues: connected.length > 0 ? connected : found.map(({ agent }) => agent),
    output: process.stderr,
  })
  if (isCancel(chosen)) throw new DexError("cancelled", "Nothing was changed.")
  return chosen.length === found.length ? [] : chosen
}

async function suggestionsChoice(): Promise<Pick<WiringInput, "hooks" | "speak" | "no_hooks">> {
  const { select, isCancel } = await import("@clack/prompts")
  const chosen = await select({
    message: "Let dex suggest past fixes, decisions and files to your agents?",
    options: [
      { value: "week", label: "Silent for a week", hint: "logs what it would say; then you decide" },
      { value: "on", label: "On" },
      { value: "off", label: "Off" },
    ],
    output: process.stderr,
  })
  if (isCancel(chosen)) throw new DexError("cancelled", "Nothing was changed.")
  if (chosen === "off") return { no_hooks: true }
  return chosen === "on" ? { speak: true } : { hooks: true }
}
