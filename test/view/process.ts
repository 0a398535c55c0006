import { spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { DEX } from "../support/dex.ts"

export type RunningView = {
  /** The address that lets one browser in. */
  address: string
  pid: number
  /** Resolves when the process has ended, however it did. */
  gone: Promise<unknown>
  stop(): Promise<void>
}

/** `dex view` of the built program, as a process. */
export async function startView(
  home: string,
  env: Record<string, string> = {},
  args: string[] = [],
): Promise<RunningView> {
  const child = spawn(process.execPath, [DEX, "view", "--no-open", ...args], {
    cwd: home,
    env: { HOME: home, PATH: process.env.PATH ?? "", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  })
  const gone = once(child, "exit")
  const [address] = (await once(createInterface(child.stdout), "line")) as [string]
  return {
    address,
    pid: child.pid!,
    gone,
    stop: async () => {
      child.kill("SIGTERM") // of one that has ended nothing comes
      await gone
    },
  }
}
