import { loadSettings } from "../config/load.ts"
import { llmSettings } from "../config/servers.ts"
import { type Model, openModel as open } from "../llm/model.ts"
import type { Dex } from "../tools/context.ts"

/** What a person may choose for one run. */
export type ModelChoice = { model?: string; temperature?: number }

/** The model that is set up; undefined where there is none. */
export function configuredModel(dex: Dex, choice: ModelChoice = {}): Model | undefined {
  const { settings } = loadSettings({ file: dex.home.config, env: dex.machine.env, project: dex.project })
  const found = llmSettings(settings, { env: dex.machine.env, home: dex.machine.home })
  return found && open({ ...found, ...choice })
}
