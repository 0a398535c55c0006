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
export function startView(home: string, env: Record<string, string> = {}, args: string[] = []): Promise<RunningView> {
  return startPages(home, ["view", "--no-open", ...args], { env })
}

/** A command of the built program that serves pages, as a process. */
export async function startPages(
  home: string,
  words: string[],
  { env = {}, cwd = home }: { env?: Record<string, string>; cwd?: string } = {},
): Promise<RunningView> {
  const child = spawn(process.execPath, [DEX, ...words], {
    cwd,
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
