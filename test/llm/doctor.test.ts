import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { closedUrl } from "../support/embedding-server.ts"
import { type ModelServer, modelServer } from "../support/model-server.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"

const KEY = "sk-doctor-0123456789abcdef"

async function checked(server: Pick<ModelServer, "url">, home = tempDir()) {
  const env = { DEX_LLM_PROVIDER: server.url, DEX_LLM_MODEL: "small", DEX_LLM_API_KEY: KEY }
  const run = await dex(home, ["doctor", "--json"], env)
  const { ok, checks } = JSON.parse(run.stdout) as { ok: boolean; checks: { name: string }[] }
  return { ok, run, env, home, model: checks.find(({ name }) => name === "model") }
}

describe("dex doctor", () => {
  test("sends the model one small request, if one is configured", async () => {
    const server = await modelServer(() => [{ text: "ok" }])
    const { ok, model } = await checked(server)
    expect(ok).toBe(true)
    expect(model).toMatchObject({ status: "ok", message: expect.stringMatching(/\/small answers \(\d+ ms\)/) })
    expect(server.requests).toHaveLength(1)
    expect(server.requests[0]!.body).toMatchObject({ model: "small", max_tokens: 16 })
  })

  test("sends nothing if none is configured", async () => {
    const server = await modelServer(() => [{ text: "ok" }])
    const run = await dex(tempDir(), ["doctor", "--json"], { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: server.url })
    expect(run.stdout).not.toContain('"model"')
    expect(server.requests).toEqual([])
  })

  test("says what is wrong and what to do, and never the key", async () => {
    const echo = `no: ${KEY}`
    const wrongKey = await modelServer(() => ({ status: 401, json: { error: { message: echo } } }))
    const wrongModel = await modelServer(() => ({ status: 404, json: { error: { message: echo } } }))
    const found = [
      await checked(wrongKey),
      await checked(wrongModel),
      await checked({ url: `${await closedUrl()}/v1` }),
    ]
    expect(found.map(({ model }) => model)).toMatchObject([
      { status: "problem", message: expect.stringMatching(/refused the key/), mend: "dex config set llm.api_key" },
      { status: "problem", message: expect.stringMatching(/has no model small/), mend: "dex config set llm.model …" },
      { status: "problem", message: expect.stringMatching(/Nothing answers/), mend: "dex config set llm.provider …" },
    ])
    for (const { ok, run, env, home } of found) {
      expect(ok).toBe(false)
      expect(run.code).toBe(1)
      const shown = await dex(home, ["doctor"], env)
      expect(JSON.stringify([run, shown])).not.toContain(KEY.slice(0, 9))
      expect(everything(home)).not.toContain(KEY.slice(0, 9))
    }
  })

  test("names a check that fails itself by what it checks", async () => {
    const home = tempDir()
    mkdirSync(join(home, ".dex"), { mode: 0o700 })
    writeFileSync(join(home, ".dex/hub.json"), "not JSON", { mode: 0o600 })
    const { checks } = JSON.parse((await dex(home, ["doctor", "--json"])).stdout)
    expect(checks).toContainEqual(expect.objectContaining({ name: "hub", status: "problem" }))
  })
})

/** The content of all files below a folder, including traces. */
function everything(dir: string): string {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    .join("\n")
}
