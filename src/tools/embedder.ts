import { loadSettings } from "../config/load.ts"
import { embedSettings } from "../config/servers.ts"
import type { Dex } from "./context.ts"

/** The embedder that the settings name; undefined when they name none. Calling it may throw: its key is read then. */
export function embedderOf(dex: Dex): (() => ReturnType<typeof embedSettings>) | undefined {
  const where = { env: dex.machine.env, home: dex.machine.home }
  const { settings } = loadSettings({ file: dex.home.config, env: where.env, project: dex.project })
  return settings["embed.provider"] === "none" ? undefined : () => embedSettings(settings, where)
}
