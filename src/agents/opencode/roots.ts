import { basename, dirname, isAbsolute, join } from "node:path"
import type { Machine } from "../kit/connector.ts"

/** Also of those that have its schema: each keeps it in a folder of its own. */
export const OPENCODE_DATABASE = /^(?:opencode|kilo|mimocode).*\.db$/

export function opencodeRoots({ home, env }: Machine): string[] {
  const xdg = env.XDG_DATA_HOME
  const data = join(xdg && isAbsolute(xdg) ? xdg : join(home, ".local", "share"), "opencode")
  const named = env.OPENCODE_DB
  if (!named || named === ":memory:") return [data]
  const database = isAbsolute(named) ? named : join(data, named)
  const isFoundAnyway = dirname(database) === data && OPENCODE_DATABASE.test(basename(database))
  return isFoundAnyway ? [data] : [data, database]
}
