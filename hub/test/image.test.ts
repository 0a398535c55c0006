import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, chownSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { dirname, join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { hubAdmin } from "../../src/cli/hub-admin.ts"
import { useHub } from "../../src/hub-client/client.ts"
import { tempDir } from "../../test/support/temp.ts"
import { runImageSteps } from "../scripts/image-steps.mjs"
import { hasPostgres, newDatabase } from "./support/postgres.ts"

const HUB = join(import.meta.dirname, "..")
const isRoot = process.getuid?.() === 0

describe.skipIf(!hasPostgres || process.platform !== "linux")("the image's steps", () => {
  test("make a program that migrates, serves as an ordinary user, is healthy and ends when asked to", async () => {
    const image = runImageSteps(join(HUB, "../node_modules"))
    onTestFinished(() => rmSync(dirname(image.folder), { recursive: true, force: true }))
    const database = await newDatabase({ migrated: false })
    const folder = tempDir()
    const key = join(folder, "master.key")
    writeFileSync(key, `${database.masterKey.toString("hex")}\n`, { mode: 0o600 })
    chmodSync(folder, 0o755)
    const [user, group] = image.user!.split(":").map(Number) as [number, number]
    expect(user).toBeGreaterThan(0)
    if (isRoot) chownSync(key, user, group)
    const inImage = (word: string) => (word.startsWith("/") ? join(image.folder, word) : word)
    const port = await freePort()
    const env = {
      PATH: process.env.PATH ?? "",
      ...image.env,
      DEX_HUB_DATA: inImage(image.env.DEX_HUB_DATA!),
      DEX_HUB_MASTER_KEY_FILE: key,
      DEX_HUB_OWNER_URL: database.owner,
      DEX_HUB_DATABASE_URL: database.app,
      DEX_HUB_INDEX_URL: database.index,
      DEX_HUB_ADMIN_URL: database.admin,
      DEX_HUB_PORT: String(port),
    }
    // It can write only to its volume.
    const as = { env, cwd: "/", ...(isRoot && { uid: user, gid: group }) }
    const entrypoint = image.entrypoint.slice(1).map(inImage)
    const hub = (...args: string[]) =>
      execFileSync(process.execPath, [...entrypoint, ...args], { ...as, encoding: "utf8" })
    expect(hub("migrate")).toMatch(/^Updated the tables from version 0 to version \d+/)
    expect(hub("migrate")).toMatch(/already/)
    const code = /dexc_\S+/.exec(hub("init"))![0]
    const child = spawn(process.execPath, [...entrypoint, ...image.command], { ...as, stdio: "ignore" })
    onTestFinished(() => void child.kill("SIGKILL"))
    const isHealthy = () => {
      try {
        execFileSync(process.execPath, image.health!.slice(1), { ...as, stdio: "ignore" })
        return true
      } catch {
        return false
      }
    }
    await expect.poll(isHealthy).toBe(true)
    const home = { dir: tempDir() }
    const address = `http://127.0.0.1:${port}`
    await hubAdmin(home, ["login", address], async () => code)
    await hubAdmin(home, ["tenant", "add", "acme"], async () => "")
    const invited = await hubAdmin(home, ["tenant", "admin", "acme", "ann"], async () => "")
    const token = await useHub({ address }, (client) => client.redeem(invited.split("\n")[0]!))
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    const reply = await fetch(`http://127.0.0.1:${port}/v1/tools/search`, {
      method: "POST",
      headers,
      body: JSON.stringify({ query: "walrus" }),
    })
    // A thread of the built program has answered.
    expect([reply.status, ((await reply.json()) as { results: object[] }).results]).toEqual([200, []])
    await expect.poll(() => readdirSync(env.DEX_HUB_DATA)).toEqual(["team-1"])
    const ended = once(child, "exit")
    child.kill("SIGTERM")
    expect(await ended).toEqual([0, null])
    expect(isHealthy()).toBe(false)
  })
})

test("compose.yaml and the Dockerfile set only what dex-hub reads", () => {
  const read = (file: string) => readFileSync(join(HUB, file), "utf8")
  const names = (text: string) => new Set(text.match(/\bDEX_HUB_[A-Z_]+\b/g))
  const known = names(read("src/main.ts") + read("src/settings.ts"))
  const set = [...names(read("Dockerfile")), ...read("compose.yaml").matchAll(/^ +(DEX_HUB_\w+):/gm)].map((one) =>
    typeof one === "string" ? one : one[1]!,
  )
  expect(set.length).toBeGreaterThan(6)
  expect(set.filter((name) => !known.has(name))).toEqual([])
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as { port: number }
  server.close()
  return port
}
