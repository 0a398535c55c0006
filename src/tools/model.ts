import { loadSettings } from "../config/load.ts"
import { llmSettings } from "../config/servers.ts"
import { withoutUndefined } from "../core/defined.ts"
import { DexError } from "../core/error.ts"
import type { Model } from "../llm/model.ts"
import type { Dex } from "./context.ts"

/** Settings for one run, which override the user's settings. */
export type ModelChoice = { model?: string; temperature?: number }

/**
 * The configured model; undefined if there is none. Throws if it is an agent that is not installed or that the user has not
 * allowed. `isOnlyNamed` means that the model will be shown but not used, so the agent need not be allowed.
 */
export async function configuredModel(
  dex: Dex,
  choice: ModelChoice & { isOnlyNamed?: boolean } = {},
): Promise<Model | undefined> {
  const { isOnlyNamed, ...chosen } = choice
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env, project: dex.place })
  const llm = llmSettings(settings, { env: dex.machine.env, home: dex.machine.home })
  if (!llm) return undefined
  if (llm.type === "server") {
    const { openModel } = await import("../llm/model.ts")
    return openModel({ ...llm, ...withoutUndefined(chosen) })
  }
  if (chosen.temperature !== undefined)
    throw new DexError(
      "usage",
      "--temperature works only with a model server, not with an agent that is used as a model.",
    )
  const { chooseAgent, requireAllowed, requireInstalled } = await import("../headless/choose.ts")
  const { openAgentModel } = await import("../headless/agent-model.ts")
  const candidate = await chooseAgent(llm.provider, dex.machine.env)
  if (!candidate && isOnlyNamed) return undefined
  const agent = requireInstalled(candidate, dex.machine.env)
  if (!isOnlyNamed) requireAllowed(agent, llm.allowed)
  const model = chosen.model ?? llm.model
  const { maxTokens } = llm
  const environment = { machine: dex.machine, dexDir: dex.home.dir }
  return openAgentModel({ chosen: agent, model, maxTokens, ...environment })
}
