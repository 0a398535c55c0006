import { loadSettings } from "../config/load.ts"
import { llmSettings } from "../config/servers.ts"
import { withoutUndefined } from "../core/defined.ts"
import { DexError } from "../core/error.ts"
import type { Model } from "../llm/model.ts"
import type { Dex } from "./context.ts"

/** Choices for one run. */
export type ModelChoice = { model?: string; temperature?: number }

/**
 * The configured model; undefined if there is none. Throws if it is an agent that is not installed. Also throws if the user has
 * not allowed that agent, unless `only_named` says that the model will not be used.
 */
export async function configuredModel(
  dex: Dex,
  choice: ModelChoice & { only_named?: boolean } = {},
): Promise<Model | undefined> {
  const { only_named, ...chosen } = choice
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env, project: dex.project })
  const found = llmSettings(settings, { env: dex.machine.env, home: dex.machine.home })
  if (!found) return undefined
  if (found.type === "server") {
    const { openModel } = await import("../llm/model.ts")
    return openModel({ ...found, ...withoutUndefined(chosen) })
  }
  if (chosen.temperature !== undefined)
    throw new DexError(
      "usage",
      "--temperature works only with a model server, not with an agent that is used as a model.",
    )
  const { chooseAgent, requireAllowed, requireInstalled } = await import("../headless/choose.ts")
  const { openAgentModel } = await import("../headless/agent-model.ts")
  const first = await chooseAgent(found.provider, dex.machine.env)
  if (!first && only_named) return undefined
  const agent = requireInstalled(first, dex.machine.env)
  if (!only_named) requireAllowed(agent, found.allowed)
  const model = chosen.model ?? found.model
  const { maxTokens } = found
  const where = { machine: dex.machine, dexDir: dex.home.dir }
  return openAgentModel({ chosen: agent, model, maxTokens, ...where })
}
