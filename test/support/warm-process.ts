import { fileURLToPath } from "node:url"
import { pinStandIns } from "./pin-stand-in.mjs"
import type { CommandLine, Ended } from "./warm.ts"

// Runs one command line of the built program after another. Each has its own environment, folder and output, and ends when a
// process of its own would have ended: when nothing is left to wait for.

const built = fileURLToPath(new URL("../../dist/main.js", import.meta.url))
const { main } = (await import(built)) as typeof import("../../src/cli/main.ts")

let said = { stdout: "", stderr: "" }
for (const name of ["stdout", "stderr"] as const)
  process[name].write = ((chunk: string | Uint8Array, ...more: unknown[]) => {
    said[name] += Buffer.from(chunk as string).toString()
    const done = more.find((one) => typeof one === "function")
    if (done) process.nextTick(done as () => void)
    return true
  }) as typeof process.stdout.write

process.on("message", async ({ args, env, cwd }: CommandLine) => {
  said = { stdout: "", stderr: "" }
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  pinStandIns()
  process.chdir(cwd)
  process.argv.splice(2, Number.POSITIVE_INFINITY, ...args)
  process.exitCode = 13 // as Node ends what waits for nothing
  process.channel!.unref()
  process.exitCode = await main(args)
})

process.on("beforeExit", () => {
  process.channel!.ref()
  process.send!({ code: Number(process.exitCode), ...said } satisfies Ended)
})

process.on("disconnect", () => process.exit())
process.argv[1] = fileURLToPath(new URL("../../dist/dex.js", import.meta.url))
process.send!("ready")
