import { spawn } from "node:child_process"
import { expect, test } from "vitest"
import { DEX } from "../../support/dex.ts"
import { synced } from "../../support/synced.ts"

/** The time until this text is shown on a terminal. Undefined if no program can make a terminal. */
function shownAfter(home: string, words: string, expected: string): Promise<number | undefined> {
  const start = performance.now()
  return new Promise((resolve) => {
    const child = spawn("script", ["-qfec", `exec '${process.execPath}' '${DEX}' ${words}`, "/dev/null"], {
      env: { HOME: home, PATH: "/usr/bin:/bin", TERM: "xterm", LANG: "C.UTF-8" },
      stdio: ["pipe", "pipe", "ignore"],
    })
    let screen = ""
    let ms: number | undefined
    child.once("error", () => resolve(undefined))
    child.stdout.on("data", (data) => {
      screen += String(data)
      if (ms !== undefined || !screen.includes(expected)) return
      ms = performance.now() - start
      child.stdin.write("\x03")
    })
    child.once("close", () => resolve(ms))
  })
}

test("the picker appears within 1.3 times the time that dex list takes", async () => {
  const home = await synced()
  const ratios: number[] = []
  for (let i = 0; i < 16; i++) {
    const list = await shownAfter(home, "list", "Refresh token race")
    const picker = await shownAfter(home, "", "Esc")
    if (list === undefined || picker === undefined) return console.log("NOT RUN: no program here makes a terminal")
    if (i > 0) ratios.push(picker / list)
  }
  ratios.sort((a, b) => a - b)
  console.log(`first screen / dex list: ${ratios.map((ratio) => ratio.toFixed(2)).join(" ")}`)
  expect(ratios[7]).toBeLessThan(1.3)
})
