import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { describe, expect, onTestFinished, test } from "vitest"
import { deviceLogin } from "../../src/tools/hub/login.ts"
import { DEX, dex, environment } from "../../test/support/dex.ts"
import { tempDir } from "../../test/support/temp.ts"
import { hubWithLogin, verified } from "./support/login.ts"
import { hasPostgres } from "./support/postgres.ts"
import { approve } from "./support/provider.ts"

/** Runs `dex hub login` as a process, and returns the address that it prints. */
function startLogin(home: string, url: string) {
  const child = spawn(process.execPath, [DEX, "hub", "login", url], {
    env: environment(home, {}),
    cwd: home,
    stdio: "pipe",
  })
  onTestFinished(() => void child.kill("SIGKILL"))
  child.stdin.end()
  let errors = ""
  const address = new Promise<string>((resolve) => {
    child.stderr.setEncoding("utf8").on("data", (piece: string) => {
      errors += piece
      const found = /^Open (\S+)$/m.exec(errors)?.[1]
      if (found && errors.includes("Waiting")) resolve(found)
    })
  })
  const ended = Promise.all([once(child, "close"), text(child.stdout)]).then(([[code], stdout]) => ({
    code: code as number,
    stdout,
    stderr: errors,
  }))
  return { child, address, ended }
}

describe.skipIf(!hasPostgres)("dex hub login with an identity provider", () => {
  test("prints an address and a code, waits, and stores the token", async () => {
    const { hub } = await hubWithLogin({ gus: verified("gus@example.com") })
    const home = tempDir()
    const { address, ended } = startLogin(home, hub.url)
    const opened = await address
    await approve(opened, "gus")
    const { code, stdout, stderr } = await ended
    expect([code, stdout]).toEqual([0, expect.stringContaining("as gus (acme)")])
    const shown = new URL(opened).searchParams.get("user_code")!
    expect(stderr).toContain(`this code: ${shown}`)
    const { token } = JSON.parse(readFileSync(join(home, ".dex/hub.json"), "utf8")) as { token: string }
    expect(token).toMatch(/^dexh_/)
    expect(stdout + stderr).not.toContain("dexh_")
    expect((await dex(home, ["hub", "status"])).stdout).toContain("as gus (acme)")
    const log = hub.log.join("\n")
    for (const secret of [token, shown, "gus@example.com", "dexh_"]) expect(log).not.toContain(secret)
  })

  test("reports a refusal, ends on Ctrl-C, and stores nothing in either case", async () => {
    const { hub } = await hubWithLogin({ gus: verified("gus@example.com") })
    const home = tempDir()
    const refused = startLogin(home, hub.url)
    await approve(await refused.address, "gus", { refuse: true })
    expect(await refused.ended).toMatchObject({ code: 2, stderr: expect.stringContaining("was refused") })
    const stopped = startLogin(home, hub.url)
    await stopped.address
    stopped.child.kill("SIGINT")
    expect(await stopped.ended).toMatchObject({ code: 2, stderr: expect.stringContaining("Nothing was changed.") })
    expect((await dex(home, ["hub", "status"])).stdout).toContain("No hub is set up")
    expect((await dex(home, ["hub", "login", hub.url, "--paste"])).stderr).toContain("--token-stdin")
  })
})

describe("waiting for a login", () => {
  /** A hub that gives these answers one after the other, and the pause before each. */
  async function waited(answers: [number, object][], expires_in = 600) {
    const begun = {
      login: "sealed",
      user_code: "AB-CD",
      verification_uri: "https://login.test",
      expires_in,
      interval: 5,
    }
    const server = createServer((request, response) => {
      const [status, body] = request.url === "/v1/login/device" ? [200, begun] : answers.shift()!
      response.writeHead(status).end(JSON.stringify(body))
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    onTestFinished(() => void server.close())
    const waits: number[] = []
    const token = deviceLogin(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
      signal: new AbortController().signal,
      show: () => {},
      wait: async (ms) => void waits.push(ms),
    })
    return { token: await token.catch((error: Error) => error.message), waits }
  }

  test("waits longer after each slow_down and each failure, and stops when the code expires", async () => {
    const done: [number, object] = [200, { state: "done", token: "dexh_x" }]
    const waiting: [number, object] = [200, { state: "waiting" }]
    const slow: [number, object] = [200, { state: "slow_down" }]
    expect(await waited([waiting, slow, waiting, [502, {}], done])).toEqual({
      token: "dexh_x",
      waits: [5_000, 5_000, 10_000, 10_000, 15_000],
    })
    expect(await waited([waiting, waiting], 10)).toEqual({
      token: "The code has expired. Log in again.",
      waits: [5_000, 5_000],
    })
    const problem = { error: { code: "expired", message: "The code has expired." } }
    expect(await waited([[410, problem]])).toMatchObject({ token: expect.stringContaining("The code has expired.") })
  })
})
