import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"
import { serverStart } from "../kit/start.ts"
import type { Wiring } from "../kit/wiring.ts"

export const vscodeWiring: Wiring = {
  signs: (machine) => ({ paths: [folder(machine)] }),
  wanted: (machine, bin) => [
    {
      path: join(folder(machine), "mcp.json"),
      additions: [{ type: "property", path: ["servers", "dex"], value: { type: "stdio", ...serverStart(bin) } }],
    },
  ],
}

/** The user's settings of the stable edition and its default profile. */
function folder({ home, env, platform }: Machine): string {
  if (platform === "darwin") return join(home, "Library", "Application Support", "Code", "User")
  if (platform === "win32") return join(env.APPDATA ?? join(home, "AppData", "Roaming"), "Code", "User")
  return join(env.XDG_CONFIG_HOME || join(home, ".config"), "Code", "User")
}
