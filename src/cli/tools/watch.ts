import { realpathSync } from "node:fs"
import { choice, flag, listOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../../tools/context.ts"
import { stateShape } from "../../watch/state.ts"

// This tool is not in src/tools, because only a person may start a process that keeps running.

export const watch = defineTool({
  name: "watch",
  summary: "Keep the history up to date while you work",
  input: object({
    status: optional(flag("Show whether dex watch is running, since when, and what it last read.")),
    off: optional(flag("Stop watching this folder's project.")),
    install: optional(flag("Install dex watch as a user service (systemd or launchd) that starts when you log in.")),
    uninstall: optional(flag("Remove the user service.")),
    yes: optional(flag("With install and uninstall: do not ask.")),
  }),
  renamed: { remove: "off" },
  output: object({
    running: flag(),
    state: optional(stateShape),
    removed: optional(text("With off: the project that is no longer watched.")),
    service: optional(
      object({
        change: choice(["none", "create", "edit", "remove"]),
        path: text(),
        content: optional(text("The content that the file has or will have.")),
        commands: listOf(listOf(text()), "The commands that are run, in this order."),
        note: optional(text()),
      }),
    ),
    asked: optional(flag("Nothing was changed yet. Set yes to make the change.")),
  }),
  cli: { group: "For agents and scripts", short: { y: "yes" }, example: "dex watch" },
  run: async (dex: Dex, input) => {
    if (input.install || input.uninstall) {
      const { changeService } = await import("../../integrations/watch-service.ts")
      const action = input.install ? "install" : "uninstall"
      const program = { node: process.execPath, script: realpathSync(process.argv[1]!) }
      const service = changeService(
        { machine: dex.machine, dexHome: dex.home.dir, program },
        action,
        input.yes === true,
      )
      return { ...(await stateOf(dex)), ...service }
    }
    if (input.off) {
      const { optOut } = await import("../../config/projects.ts")
      return { ...(await stateOf(dex)), removed: optOut(dex.home, dex.place) ? dex.place : undefined }
    }
    return stateOf(dex)
  },
  found: (output) =>
    output.asked !== true && (output.running || output.removed !== undefined || output.service !== undefined),
})

async function stateOf(dex: Dex) {
  const { isRunning, readState } = await import("../../watch/instance.ts")
  if (!isRunning(dex.home)) return { running: false }
  const state = readState(dex.home)
  return { running: true, state }
}

/** True if `dex watch` itself keeps running. With one of these options it only shows or changes something. */
export function keepsRunning(input: {
  status?: boolean
  off?: boolean
  install?: boolean
  uninstall?: boolean
}): boolean {
  return !input.status && !input.off && !input.install && !input.uninstall
}
