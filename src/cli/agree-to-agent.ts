import { dexHome } from "../config/home.ts"
import { loadSettings } from "../config/load.ts"
import { splitNames } from "../config/settings.ts"
import { writeSetting } from "../config/write.ts"
import { DexError } from "../core/error.ts"
import { isAgentProvider } from "../core/model-run.ts"
import { terminalOf, wrap } from "../render/terminal.ts"
import { isTerminal } from "./confirm-wiring.ts"

/**
 * Where an agent is to write the answers: says on a terminal what would be sent to whom, and asks once. The answer is
 * kept in the user's settings. In a pipe nobody is asked; then whoever opens the model refuses.
 */
export async function agreeToAgent(env: Record<string, string | undefined>): Promise<void> {
  const home = dexHome(env)
  const { settings } = loadSettings({ file: home.config, env })
  const provider = settings["llm.provider"]
  if (!isAgentProvider(provider) || !isTerminal()) return
  const { chooseAgent, mustBeThere, agentName, whatIsSent } = await import("../headless/choose.ts")
  const chosen = mustBeThere(await chooseAgent(provider, env), env)
  const allowed = splitNames(settings["llm.allowed_agents"])
  if (allowed.includes(chosen.agent.source)) return
  const { columns } = terminalOf(process.stderr, env)
  process.stderr.write(`${wrap(whatIsSent(chosen), columns).join("\n")}\n`)
  const { confirm, isCancel } = await import("@clack/prompts")
  const message = `Let dex ask ${agentName(chosen)} from now on?`
  const yes = await confirm({ message, initialValue: false, output: process.stderr })
  if (isCancel(yes) || !yes)
    throw new DexError("cancelled", "Nothing was sent. For answers without a model: dex config unset llm.provider")
  writeSetting(home.config, "llm.allowed_agents", [...allowed, chosen.agent.source].join(","))
}
