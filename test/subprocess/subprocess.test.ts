import { once } from "node:events"
import { describe, expect, onTestFinished, test } from "vitest"
import { isSubprocessEnded, type Subprocess, subprocessFile } from "../../src/subprocess/link.ts"
import { startProcess } from "../../src/subprocess/process.ts"
import { startThread } from "../../src/subprocess/thread.ts"
import type { EchoOrder } from "./echo.ts"

type Echo = Subprocess<EchoOrder, string, number>

const FILE = subprocessFile("./echo.ts", import.meta.url)
const STARTS: Record<"thread" | "process", () => Echo> = {
  thread: () => startThread(FILE, { limits: {} }),
  process: () => startProcess(FILE),
}

describe.each(["thread", "process"] as const)("a %s", (kind) => {
  const started = (): Echo => {
    const echo = STARTS[kind]()
    onTestFinished(echo.kill)
    return echo
  }

  test("answers each order with its own answer, in order, after its events", async () => {
    const echo = started()
    const events: number[] = []
    const heard: string[] = []
    const answers = [
      echo.ask({ type: "count", to: 3 }, { onEvent: (n) => events.push(n) }),
      echo.ask({ type: "say", words: "hello" }),
      echo.ask({ type: "say", words: "again" }),
    ].map((answer) => answer.then((words) => heard.push(words)))
    await Promise.all(answers)
    expect(heard).toEqual(["counted to 3", "hello", "again"])
    expect(events).toEqual([1, 2, 3])
    expect(echo.memory() > 0).toBe(kind === "process")
  })

  test("passes on an order's error, with the code of a DexError, and continues", async () => {
    const echo = started()
    await expect(echo.ask({ type: "say", words: (() => {}) as never })).rejects.toThrow(/could not be cloned/)
    await expect(echo.ask({ type: "fail" })).rejects.toMatchObject({ name: "Error", message: "it failed" })
    await expect(echo.ask({ type: "fail", code: "usage" })).rejects.toMatchObject({
      name: "DexError",
      code: "usage",
      message: "it failed in words",
    })
    expect(await echo.ask({ type: "say", words: "still here" })).toBe("still here")
  })

  test("cancels an order by its signal, even if that is already aborted, and no other order", async () => {
    const echo = started()
    const stop = new AbortController()
    const waiting = echo.ask({ type: "wait" }, { signal: stop.signal, onEvent: () => stop.abort() })
    expect(await waiting).toBe("cancelled")
    expect(await echo.ask({ type: "say", words: "next" })).toBe("next")
  })

  test("that ends early rejects all pending and later orders", async () => {
    const echo = started()
    const answers = [echo.ask({ type: "die" }), echo.ask({ type: "say", words: "lost" })]
    const ends = await Promise.all(answers.map((one) => one.catch((error: unknown) => error)))
    expect(ends.every(isSubprocessEnded)).toBe(true)
    expect(echo.hasEnded()).toBe(true)
    await expect(echo.ask({ type: "say", words: "late" })).rejects.toSatisfy(isSubprocessEnded)
    expect(await echo.ended).toMatchObject({ isNotStarted: false })
    await echo.end()
  })

  test("is cancelled and waited for when it is ended, and ends immediately when it is killed", async () => {
    const echo = started()
    const begun = Promise.withResolvers<number>()
    const waiting = echo.ask({ type: "wait" }, { onEvent: begun.resolve })
    await begun.promise
    const ending = echo.end()
    expect(await waiting).toBe("cancelled")
    await ending
    const other = started()
    const lost = other.ask({ type: "wait" }).catch((error: unknown) => error)
    await other.kill()
    expect(await lost).toSatisfy(isSubprocessEnded)
  })
})

test("a process that cannot be started rejects every order with the reason", async () => {
  const echo = startProcess<EchoOrder, string>(FILE, { cwd: "/no/such/folder" })
  await expect(echo.ask({ type: "say", words: "x" })).rejects.toMatchObject({ isNotStarted: true })
  await expect(echo.ask({ type: "say", words: "y" })).rejects.toMatchObject({ isNotStarted: true })
  await echo.end()
  await echo.kill()
})

test("a thread that uses up its memory reports that, and this process continues", async () => {
  const hog = `const all = []; for (;;) all.push(new Array(1e5).fill(all.length))`
  const thread = startThread(new URL(`data:text/javascript,${encodeURIComponent(hog)}`), {
    limits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
  })
  await expect(thread.ask("x")).rejects.toMatchObject({ code: "ERR_WORKER_OUT_OF_MEMORY" })
})

test("a process ends with its parent, even while it is busy", async () => {
  const code = `
    import { startProcess } from ${JSON.stringify(new URL("../../src/subprocess/process.ts", import.meta.url).href)}
    const echo = startProcess(new URL(${JSON.stringify(FILE.href)}))
    echo.ask({ type: "wait" }, { onEvent: () => process.kill(process.pid, "SIGKILL") })`
  const { spawn } = await import("node:child_process")
  // All of them inherit the output, so it is closed when the last one has ended.
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "ignore", "pipe"] })
  child.stderr.resume()
  await once(child, "close")
  expect(child.signalCode).toBe("SIGKILL")
})

test("a program is found next to its source, and in the bundle next to the first file", () => {
  expect(subprocessFile("./x-process.ts", "file:///src/a/b.ts").href).toBe("file:///src/a/x-process.ts")
  expect(subprocessFile("./x-process.ts", "file:///dist/cold/piece-A1.js").href).toBe("file:///dist/x-process.js")
  expect(subprocessFile("./x-process.ts", "file:///cold/dist/main.js").href).toBe("file:///cold/dist/x-process.js")
})
