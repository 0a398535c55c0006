import { spawn } from "node:child_process"
import { DEX } from "../support/dex.ts"

/**
 * Runs dex on a terminal, and types each answer once its question appears. Undefined if there is no program that
 * creates a terminal.
 */
export function onTerminal(
  home: string,
  args: string[],
  answers: [question: RegExp, keys: string][],
  columns = 160,
  path = "/usr/bin:/bin",
): Promise<{ code: number | null; screen: string } | undefined> {
  return script(home, `exec ${DEX_COMMAND} ${args.map((word) => `'${word}'`).join(" ")}`, answers, columns, path)
}

/** The same for lines of a shell, in which `dex` is dex. */
export function shellOnTerminal(
  home: string,
  lines: string[],
  answers: [question: RegExp, keys: string][] = [],
  path?: string,
) {
  return script(home, [`dex() { ${DEX_COMMAND} "$@"; }`, ...lines].join("\n"), answers, 160, path)
}

const DEX_COMMAND = [process.execPath, DEX].map((word) => `'${word}'`).join(" ")

function script(
  home: string,
  lines: string,
  answers: [question: RegExp, keys: string][],
  columns = 160,
  path = "/usr/bin:/bin",
): Promise<{ code: number | null; screen: string } | undefined> {
  if (process.platform !== "linux") return Promise.resolve(undefined)
  return new Promise((resolve) => {
    const child = spawn("script", ["-qfec", `stty cols ${columns} rows 50; ${lines}`, "/dev/null"], {
      env: { HOME: home, PATH: path, SHELL: "/bin/sh", TERM: "xterm", TZ: "UTC", NO_COLOR: "1" },
      cwd: home,
      stdio: ["pipe", "pipe", "ignore"],
    })
    let screen = ""
    let unread = ""
    const waiting = [...answers]
    child.once("error", () => resolve(undefined))
    child.stdout.on("data", (data) => {
      screen += String(data)
      unread += String(data)
      const next = waiting[0]
      if (next === undefined || !next[0].test(unread)) return
      waiting.shift()
      unread = ""
      child.stdin.write(next[1])
    })
    child.once("close", (code) => resolve({ code, screen }))
  })
}
