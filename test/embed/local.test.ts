import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { askHelper, type Helper, helperState } from "../../src/embed/ask-helper.ts"
import type { EmbedRole } from "../../src/embed/embedder.ts"
import { helperPaths, localFolder, localPackage } from "../../src/embed/local-package.ts"
import { embedQuery, matchingStoredId, openEmbedder } from "../../src/embed/open-embedder.ts"
import { loadsOf, writeLocalModel } from "../support/local-model.ts"
import { isAlive } from "../support/processes.ts"
import { tempDir } from "../support/temp.ts"

const onWindows = process.platform === "win32"

function installed(options: Parameters<typeof writeLocalModel>[1] = {}, dexDir = tempDir()): string {
  writeLocalModel(dexDir, options)
  return dexDir
}

function helperOf(dexDir: string, role: EmbedRole): Helper {
  return { dexDir, local: localPackage(dexDir)!, role }
}

async function opened(dexDir: string) {
  return (await openEmbedder({ provider: "local", dexDir }))!
}

const running = (helper: Helper) => expect.poll(async () => (await helperState(helper))?.pid)
const cosine = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * b[i]!, 0)

test("embeds documents in a separate process, which it starts and waits for", async () => {
  const dexDir = installed()
  const embedder = await opened(dexDir)
  const [race, token, theme] = (await embedder.embed(
    ["the refresh token race", "a race of refresh tokens", "sidebar flickers"],
    { role: "document" },
  )) as [Float32Array, Float32Array, Float32Array]
  expect(cosine(race, token)).toBeGreaterThan(cosine(race, theme) + 0.2)
  expect(loadsOf(dexDir)).toHaveLength(1)
  expect(loadsOf(dexDir)[0]).not.toBe(process.pid)
})

test("a package that was changed after it was installed is not loaded, and the caller gets the reason", async () => {
  const dexDir = installed()
  const { entry } = localPackage(dexDir)!
  writeFileSync(entry, `${readFileSync(entry, "utf8")}\n// changed\n`)
  const embedder = await opened(dexDir)
  await expect(embedder.embed(["a"], { role: "document" })).rejects.toThrow(/not the one that was published/)
  expect(loadsOf(dexDir)).toEqual([])
})

test("a search that finds no process continues without it and says so; the next one has a vector", async () => {
  const dexDir = installed()
  const embedder = await opened(dexDir)
  const first = await embedQuery(embedder, "log people out", 60_000)
  expect(first).toMatchObject({ degraded: expect.stringMatching(/being loaded.*used words only/) })
  await running(helperOf(dexDir, "query")).toBeTypeOf("number")
  const second = await embedQuery(embedder, "log people out", 60_000)
  expect("vector" in second && second.vector).toHaveLength(64)
})

test("many searches at the same time load the model once", async () => {
  const dexDir = installed()
  const helper = helperOf(dexDir, "query")
  const answers = await Promise.allSettled(Array.from({ length: 6 }, () => askHelper(helper, ["a"])))
  expect(answers.some(({ status }) => status === "rejected")).toBe(true)
  await running(helper).toBeTypeOf("number")
  const vectors = await Promise.all(Array.from({ length: 6 }, () => askHelper(helper, ["a"])))
  expect(vectors).toHaveLength(6)
  expect(loadsOf(dexDir)).toEqual([(await helperState(helper))!.pid])
})

test("a killed process leaves a dead socket, and the next one replaces it", async () => {
  const dexDir = installed()
  const helper = helperOf(dexDir, "document")
  const [before] = await askHelper(helper, ["the same text"])
  const [pid] = loadsOf(dexDir)
  process.kill(pid!, "SIGKILL")
  await expect.poll(() => isAlive(pid!)).toBe(false)
  expect(existsSync(helperPaths(dexDir, helper.local, "document").socket)).toBe(!onWindows)
  expect(await askHelper(helper, ["the same text"])).toEqual([before])
  expect(loadsOf(dexDir)).toHaveLength(2)
})

test("ends after a while without requests, and removes its socket", async () => {
  process.env.DEX_LOCAL_MODEL_IDLE_MS = "1"
  const unset = () => void delete process.env.DEX_LOCAL_MODEL_IDLE_MS
  onTestFinished(unset)
  const dexDir = installed()
  const helper = helperOf(dexDir, "document")
  await askHelper(helper, ["one"])
  unset() // only that process needed it
  await expect.poll(() => isAlive(loadsOf(dexDir)[0]!)).toBe(false)
  expect(existsSync(helperPaths(dexDir, helper.local, "document").socket)).toBe(false)
})

test("after an upgrade the old model answers nobody, and its process ends", async () => {
  const dexDir = installed({ revision: "1" })
  expect(process.env.DEX_LOCAL_MODEL_IDLE_MS).toBeUndefined()
  const old = helperOf(dexDir, "query") // which would stay for ten minutes
  await expect(askHelper(old, ["one"])).rejects.toMatchObject({ code: "embed_starting" })
  await running(old).toBeTypeOf("number")
  await askHelper(old, ["one"])
  installed({ version: "2.0.0", revision: "2" }, dexDir)
  const now = helperOf(dexDir, "query")
  expect(now.local.id).not.toBe(old.local.id)
  await expect(askHelper(now, ["one"])).rejects.toMatchObject({ code: "embed_starting" })
  await running(now).toBeTypeOf("number")
  await askHelper(now, ["one"])
  const [first, second] = loadsOf(dexDir)
  expect((await helperState(now))!.pid).toBe(second)
  await expect.poll(() => isAlive(first!)).toBe(false)
  expect(isAlive(second!)).toBe(true)
})

test("a model that cannot be loaded gives the reason, and stops nothing else", async () => {
  const embedder = await opened(installed({ broken: true }))
  await expect(embedder.embed(["one"], { role: "document" })).rejects.toMatchObject({
    code: "embed_failed",
    message: expect.stringContaining("the model's file is cut short"),
  })
  expect(await embedder.probe()).toMatchObject({ ok: false, reason: expect.stringContaining("cut short") })
})

test.skipIf(onWindows)("nobody else can use it: its socket belongs to the user", async () => {
  const dexDir = installed()
  const helper = helperOf(dexDir, "document")
  await askHelper(helper, ["one"])
  const { socket } = helperPaths(dexDir, helper.local, "document")
  expect(statSync(socket).mode & 0o077).toBe(0)
})

test.skipIf(onWindows)("works in a home whose path is too long for a socket", async () => {
  const dexDir = installed({}, join(tempDir(), "long".repeat(30)))
  const helper = helperOf(dexDir, "document")
  expect(await askHelper(helper, ["one"])).toHaveLength(1)
  const { socket } = helperPaths(dexDir, helper.local, "document")
  expect(socket.startsWith(dexDir)).toBe(false)
  expect(statSync(dirname(socket)).mode & 0o077).toBe(0)
})

test("a request that is stopped ends immediately, and the process answers the next one", async () => {
  const dexDir = installed()
  const embedder = await opened(dexDir)
  const stop = new AbortController()
  stop.abort()
  await expect(embedder.embed(["one"], { role: "document", signal: stop.signal })).rejects.toMatchObject({
    code: "embed_stopped",
  })
  expect(await embedder.embed(["one"], { role: "document" })).toHaveLength(1)
})

test("the runtime is part of the id: vectors of the two are never mixed", async () => {
  const dexDir = installed()
  const wasm = await opened(dexDir)
  expect(wasm.id).toBe("local:words@1.wasm:64:p0")
  expect(matchingStoredId({ provider: "local", dexDir }, ["local:words@1.native:64:p0", wasm.id])).toBe(wasm.id)
  const native = join(localFolder(dexDir), "node_modules/onnxruntime-node")
  mkdirSync(native)
  writeFileSync(join(native, "package.json"), "{}")
  expect((await opened(dexDir)).id).toBe("local:words@1.native:64:p0")
  expect(matchingStoredId({ provider: "local", dexDir }, [wasm.id])).toBeUndefined()
})

test("without the package, it says how to install it and starts nothing", async () => {
  const dexDir = tempDir()
  await expect(openEmbedder({ provider: "local", dexDir })).rejects.toThrow("dex config set embed.provider local")
  expect(readdirSync(dexDir)).toEqual([])
})
